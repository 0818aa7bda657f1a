"""GPT-2 with skip coefficients: against a straight loop, against stored and live reference outputs, and its weights."""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from residual_gd.experiments import gpt_weights
from residual_gd.experiments.downloads import DownloadError
from residual_gd.experiments.gpt import GPT

STORED = Path(__file__).with_name("data") / "gpt2_reference.json"
SIZES = {"vocabulary": 50, "layers": 3, "width": 16, "heads": 2, "context": 12}
TOKENS = torch.tensor([[3, 41, 7, 7, 19, 2], [11, 0, 48, 5, 5, 5]])
LENGTHS = torch.tensor([6, 3])


def network(**changes):
    return GPT(rng=np.random.default_rng(0), **(SIZES | changes)).double()


def filled(model, seed=1):
    """Large weights, LayerNorms and biases included, the same for every program that knows the names."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            values = 0.3 * rng.standard_normal(tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(1.0 + values if name.endswith(("ln_1.weight", "ln_2.weight")) else values))
    return model


def by_hand(model, tokens, beta_attention, beta_ffn, layer_norm=True):
    """The scores of one sentence, token by token and head by head, from the definitions."""
    W = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}

    def norm(x, name):
        if not layer_norm:
            return x
        return (x - x.mean()) / math.sqrt(x.var() + 1e-5) * W[name + ".weight"] + W[name + ".bias"]

    def affine(x, name):
        return x @ W[name + ".weight"] + W[name + ".bias"]

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    T = [W["wte.weight"][t] + W["wpe.weight"][i] for i, t in enumerate(tokens)]
    d, size = model.width, model.width // model.heads
    for l in range(model.layers):
        mixed = [affine(norm(x, f"h.{l}.ln_1"), f"h.{l}.attn.c_attn") for x in T]
        Z = []
        for i, x in enumerate(T):
            heads = []
            for h in range(0, d, size):
                logits = np.array(
                    [mixed[i][h : h + size] @ mixed[j][d + h : d + h + size] for j in range(i + 1)]
                ) / math.sqrt(size)
                S = np.exp(logits - logits.max())
                heads.append(sum(s * mixed[j][2 * d + h : 2 * d + h + size] for j, s in enumerate(S / S.sum())))
            Z.append(beta_attention * x + affine(np.concatenate(heads), f"h.{l}.attn.c_proj"))
        T = [
            beta_ffn * z + affine(gelu(affine(norm(z, f"h.{l}.ln_2"), f"h.{l}.mlp.c_fc")), f"h.{l}.mlp.c_proj")
            for z in Z
        ]
    return W["score.weight"] @ norm(T[-1], "ln_f")


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize(("beta_attention", "beta_ffn"), [(1.0, 1.0), (0.0, 0.0), (0.25, 0.75), (1.0, 0.0)])
def test_equals_the_definition(beta_attention, beta_ffn, layer_norm):
    options = {"beta_attention": beta_attention, "beta_ffn": beta_ffn, "layer_norm": layer_norm}
    model = filled(network(**options))
    found = model(TOKENS, LENGTHS).detach().numpy()
    for row, tokens, length in zip(found, TOKENS.tolist(), LENGTHS.tolist(), strict=True):
        assert np.allclose(row, by_hand(model, tokens[:length], **options), rtol=1e-10, atol=1e-12)


def test_equals_the_stored_outputs_of_the_hugging_face_implementation():
    """Stored by transformers 5.24.0, GPT2ForSequenceClassification in float64, with the weights of ``filled``."""
    stored = json.loads(STORED.read_text())
    model = filled(network())
    assert np.allclose(model(TOKENS, LENGTHS).detach().numpy(), stored["scores"], atol=1e-6)
    states = model.ln_f(model.states(TOKENS)[1][-1][1])
    assert np.allclose(states.detach().numpy()[0], stored["states"], atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_equals_the_hugging_face_implementation():
    transformers = pytest.importorskip("transformers", reason="used by this test alone: pip install transformers")
    their_scores, _ = their_outputs(transformers)
    assert np.allclose(filled(network())(TOKENS, LENGTHS).detach().numpy(), their_scores, atol=1e-6)


def their_outputs(transformers):
    """Scores and last states of the Hugging Face classifier with the weights of ``filled``."""
    config = transformers.GPT2Config(
        vocab_size=50, n_positions=12, n_embd=16, n_layer=3, n_head=2, num_labels=2, pad_token_id=49
    )
    theirs = transformers.GPT2ForSequenceClassification(config).double().eval()
    state = {n if n == "score.weight" else "transformer." + n: p for n, p in filled(network()).named_parameters()}
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert not unexpected and not [name for name in missing if not name.endswith(".bias")]
    padded = TOKENS.clone()
    padded[1, 3:] = 49
    with torch.no_grad():
        scores = theirs(input_ids=padded, attention_mask=(padded != 49).long()).logits.numpy()
        return scores, theirs.transformer(input_ids=TOKENS[:1]).last_hidden_state[0].numpy()


def test_the_reference_is_sensitive_to_each_difference():
    """Exact GELU, another epsilon, another mask or scale would not pass: the outputs differ by far more than 1e-6."""
    right = filled(network())(TOKENS, LENGTHS).detach()
    for changes in ({"beta_attention": 0.99}, {"beta_ffn": 0.99}, {"heads": 4}, {"layer_norm": False}):
        model = network(**changes)
        model.load_state_dict(filled(network()).state_dict(), strict=False)
        assert (model(TOKENS, LENGTHS) - right).abs().max() > 1e-4, changes


def test_padding_and_later_tokens_do_not_count():
    model = filled(network())
    other = TOKENS.clone()
    other[1, 3:] = torch.tensor([9, 9, 1])
    assert torch.equal(model(other, LENGTHS)[1], model(TOKENS, LENGTHS)[1])
    alone = model(TOKENS[1:, :3], LENGTHS[1:])
    assert torch.allclose(alone[0], model(TOKENS, LENGTHS)[1], rtol=1e-12)


def test_start_is_gpt2s_and_the_same_for_every_coefficient():
    sizes = {"vocabulary": 400, "width": 64, "layers": 2}
    model, other = network(**sizes), network(**sizes, beta_attention=0.0, beta_ffn=0.0)
    for (name, a), (_, b) in zip(model.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(a, b)
        if a.ndim == 2:
            want = 0.02 / 2 if name.endswith("c_proj.weight") else 0.02
            # 128 entries at least: the sample standard deviation is within 4 of its own
            assert abs(a.std().item() / want - 1) < 4 / math.sqrt(2 * a.numel()), name
    unshrunk = network(**sizes, shrink=False, init_std=0.08)
    assert abs(unshrunk.h[0].attn.c_proj.weight.std().item() / 0.08 - 1) < 0.05


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 0}, "layers: expected an integer >= 1, got 0"),
        ({"layers": "deep"}, "layers: expected an integer >= 1"),
        ({"heads": 3}, "width: expected a multiple of the 3 heads, got 16"),
        ({"beta_attention": -0.5}, "beta_attention: expected a finite number >= 0"),
        ({"beta_ffn": math.nan}, "beta_ffn: expected a finite number >= 0"),
        ({"layer_norm": 1}, "layer_norm: expected True or False"),
        ({"init_std": 0.0}, "init_std: expected a finite number > 0"),
        ({"rng": 3}, "rng: expected a seeded numpy Generator"),
    ],
)
def test_bad_sizes(changes, message):
    with pytest.raises(ValueError, match=message):
        GPT(**({"rng": np.random.default_rng(0)} | SIZES | changes))


def test_too_many_tokens():
    with pytest.raises(ValueError, match=r"tokens: expected \(B, n\) with n from 1 to 12, got \(1, 13\)"):
        network()(torch.zeros(1, 13, dtype=torch.long), torch.tensor([13]))


# ------------------------------------------------------------------------------------------------ published weights

SMALL = {"vocabulary": 20, "width": 128, "heads": 2, "context": 6}


def safetensors(arrays):
    """A file of that format with float32 arrays."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in arrays.items():
        content = np.asarray(values, dtype="<f4").tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "F32", "shape": list(np.shape(values)), "data_offsets": offsets}
        data += content
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hugging Face cache whose "published" network is small, has four layers and more positions."""
    published = GPT(rng=np.random.default_rng(5), **(SMALL | {"layers": 4, "context": 9}))
    arrays = {name: p.detach().numpy() for name, p in published.named_parameters() if name != "score.weight"}
    content = safetensors(arrays)
    folder = tmp_path / "models--openai-community--gpt2" / "snapshots" / gpt_weights.REVISION
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(content)
    monkeypatch.setitem(gpt_weights.FILES, "model.safetensors", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(gpt_weights, "URL", "http://127.0.0.1:9/{name}")
    return tmp_path, folder / "model.safetensors", arrays


def small(**changes):
    return GPT(rng=np.random.default_rng(0), **(SMALL | {"layers": 2} | changes))


def test_published_weights_come_from_the_cache(hub):
    folder, _, arrays = hub
    model = small(beta_attention=0.0)
    classifier = model.score.weight.detach().clone()
    assert gpt_weights.load_weights(model, hub=folder) == "published GPT-2 (revision 607a30d7)"
    for name, parameter in model.named_parameters():
        if name == "score.weight":
            assert torch.equal(parameter, classifier)
        else:
            assert np.array_equal(parameter.detach().numpy(), arrays[name][: len(parameter)]), name


def test_the_usual_cache_is_found(hub, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(hub[0]))
    assert gpt_weights.load_weights(small(), "published", online=False).startswith("published")


def test_without_weights_the_start_is_random_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(gpt_weights, "URL", "http://127.0.0.1:9/{name}")
    monkeypatch.setattr(gpt_weights.pooch, "os_cache", lambda name: tmp_path)
    model = small()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    assert gpt_weights.load_weights(model, hub=tmp_path) == "random"
    assert gpt_weights.load_weights(model, "random") == "random"
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())
    with pytest.raises(FileNotFoundError, match=r"expected the published model.safetensors"):
        gpt_weights.load_weights(model, "published", hub=tmp_path, online=False)
    with pytest.raises(DownloadError, match=r"put model.safetensors of that revision into the Hugging Face cache"):
        gpt_weights.load_weights(model, "published", hub=tmp_path)


def test_another_file_is_refused(hub):
    folder, path, _ = hub
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match=r"model.safetensors: expected sha256 .*, got"):
        gpt_weights.load_weights(small(), hub=folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 5}, "layers: expected a model whose parameters model.safetensors has, got one with h.4"),
        ({"vocabulary": 21}, r"wte.weight: expected shape \(20, 128\) as published, got \(21, 128\)"),
        ({"context": 10}, r"wpe.weight: expected shape \(9, 128\) as published, got \(10, 128\)"),
        ({"heads": 4}, "heads: expected 2, of width 64 as published, got 4"),
    ],
)
def test_a_model_that_does_not_fit(hub, changes, message):
    with pytest.raises(ValueError, match=message):
        gpt_weights.load_weights(small(**changes), hub=hub[0])


@pytest.mark.parametrize("content", [b"", b"\x10" + bytes(7) + b"no json at all!!", b"\xff" * 30])
def test_broken_safetensors(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected (a whole safetensors file|the header)"):
        gpt_weights.read_safetensors(path)


def test_truncated_safetensors(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": np.zeros(4), "b": np.ones(3)})[:-2])
    with pytest.raises(ValueError, match="one that ends before or within b"):
        gpt_weights.read_safetensors(path)
