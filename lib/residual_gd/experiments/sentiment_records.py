"""The recorded runs of chapter 8 and how to make them: the paper's six networks, and what else was tried."""

from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial

from ..validation import one_of
from .records import RESULTS, Experiment, load
from .sentiment import load_corpus, subset
from .tokens import encode, gpt2_bpe, gpt2_bpe_files, train_bpe
from .training import DEPTHS, VARIANTS, Recipe, pair, train

SIX = {f"L{layers}-{variant}": {"layers": layers, "variant": variant} for layers in DEPTHS for variant in VARIANTS}
WITH, WITHOUT = {"layers": 6, "variant": "with"}, {"layers": 6, "variant": "without"}
ABLATIONS = {
    "with": WITH,
    "without": WITHOUT,
    # which of the two skips, and how much of both
    "attention-skip": WITH | {"beta_ffn": 0.0},
    "ffn-skip": WITH | {"beta_attention": 0.0},
    "beta-0.25": WITH | {"beta_attention": 0.25, "beta_ffn": 0.25},
    "beta-0.5": WITH | {"beta_attention": 0.5, "beta_ffn": 0.5},
    "beta-0.75": WITH | {"beta_attention": 0.75, "beta_ffn": 0.75},
    # learning rates, beside 5e-4
    "with-lr-1e-4": WITH | {"learning_rate": 1e-4},
    "with-lr-2e-3": WITH | {"learning_rate": 2e-3},
    "without-lr-1e-4": WITHOUT | {"learning_rate": 1e-4},
    "without-lr-2e-3": WITHOUT | {"learning_rate": 2e-3},
    # scale of the start, beside .02; GPT-2 shrinks the matrices that write into the skips, whether there are any or not
    "with-std-0.08": WITH | {"init_std": 0.08},
    "without-std-0.04": WITHOUT | {"init_std": 0.04},
    "without-std-0.08": WITHOUT | {"init_std": 0.08},
    "without-unshrunk": WITHOUT | {"shrink": False},
    "without-unshrunk-0.08": WITHOUT | {"shrink": False, "init_std": 0.08},
    "with-no-layer-norm": WITH | {"layer_norm": False},
    "without-no-layer-norm": WITHOUT | {"layer_norm": False},
}
SMALL = {"width": 768, "heads": 12, "learning_rate": 1e-4}  # GPT-2 small's


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A record: its sentences, their tokens, and the runs by name (what differs from ``common``, see ``Recipe``)."""

    source: str = "sst2"
    phrases: int | None = None
    tokenizer: str = "bpe-8192"
    seeds: int = 1
    runs: dict = field(default_factory=lambda: SIX)
    common: dict = field(default_factory=dict)
    dev: bool = True
    trace_every: int = 10
    checkpoint_every: int = 100


PLANS = {
    "sentiment-memorize": Plan(
        source="embedded", phrases=512, seeds=3, common={"epochs": 15}, dev=False, trace_every=8, checkpoint_every=80
    ),
    "sentiment-sst2": Plan(phrases=8000, seeds=5, common={"epochs": 3}),
    "sentiment-ablations": Plan(phrases=6000, seeds=3, common={"epochs": 3}, runs=ABLATIONS),
    "sentiment-sst2-all": Plan(common={"epochs": 1, "evaluate": 8000}, trace_every=25),
    "sentiment-gpt2-small": Plan(
        phrases=24000, tokenizer="gpt2", common=SMALL | {"epochs": 1, "evaluate": 4000}, checkpoint_every=75
    ),
}
NAMES = tuple(PLANS)


def experiment(name, *, device="cpu", **changes) -> Experiment:
    """The experiment whose record is ``name``.

    device: "cpu" or "cuda"; with "cuda" the networks of GPT-2 small's size see all of SST-2. changes: of the ``Plan``,
    for tests. Raises ValueError for an unknown name or device, and the errors of ``load_corpus`` and ``gpt2_bpe``.
    """
    plan = PLANS[one_of(name, PLANS, "name")]
    if one_of(device, ("cpu", "cuda"), "device") == "cuda" and name == "sentiment-gpt2-small":
        changes = {"phrases": None} | changes
    plan = Plan(**(vars(plan) | changes))
    recipes = {run: recipe(plan.common | how) for run, how in plan.runs.items()}
    files = dict(load_corpus(plan.source).files)
    if plan.tokenizer == "gpt2":
        files |= {f"gpt2/{file}": path for file, path in gpt2_bpe_files().items()}
    configuration = {
        "source": plan.source,
        "phrases": plan.phrases,
        "tokenizer": plan.tokenizer,
        "seeds": list(range(plan.seeds)),
        "recipes": {run: asdict(found) for run, found in recipes.items()},
        "dev": plan.dev,
        "trace_every": plan.trace_every,
        "dtype": "float32",
        "device": device,
    }
    pieces = {
        piece_name(run, seed): partial(_piece, plan, found, seed, device)
        for run, found in recipes.items()
        for seed in range(plan.seeds)
    }
    return Experiment(name=name, configuration=configuration, pieces=pieces, data=files, packages=("tokenizers",))


def recipe(how) -> Recipe:
    """The recipe of a run in a ``Plan``: "layers" and "variant" as in ``pair``, then entries of a ``Recipe``."""
    return Recipe(**(asdict(pair(how["layers"], how["variant"])) | {k: v for k, v in how.items() if k != "variant"}))


def recorded(name, run, folder=RESULTS) -> list[dict]:
    """The curves of a run of the record ``name``, seed by seed, see ``train``; errors as in ``records.load``."""
    plan = PLANS[one_of(name, PLANS, "name")]
    one_of(run, plan.runs, "run")
    record = load(name, folder)
    return [record["curves"][piece_name(run, seed)] for seed in record["manifest"]["configuration"]["seeds"]]


def piece_name(run, seed) -> str:
    """The name of one run with one seed in a record."""
    return f"{run}-seed{seed}"


@lru_cache(maxsize=2)
def material(source="embedded", phrases=None, tokenizer="bpe-8192", context=64):
    """Encoded sentences to train on and held-out ones, of a source of ``load_corpus``.

    phrases: how many to train on (``subset``; None: all). tokenizer: "gpt2", or "bpe-8192" and the like: byte-level BPE
    of so many tokens learned from all of the training text, which needs no labels.
    """
    corpus = load_corpus(source)
    if tokenizer == "gpt2":
        bpe = gpt2_bpe()
    else:
        kind, _, vocabulary = tokenizer.partition("-")
        one_of(kind if vocabulary.isdecimal() else tokenizer, ("bpe", "gpt2"), "tokenizer")
        bpe = train_bpe(corpus.train.texts, int(vocabulary))
    chosen = subset(corpus.train, len(corpus.train) if phrases is None else phrases)
    return encode(bpe, chosen, context), encode(bpe, corpus.dev, context)


def _piece(plan, recipe, seed, device, checkpoint):
    sentences, dev = material(plan.source, plan.phrases, plan.tokenizer, recipe.context)
    return train(
        recipe,
        sentences,
        dev if plan.dev else None,
        seed=seed,
        checkpoint=checkpoint,
        checkpoint_every=plan.checkpoint_every,
        trace_every=plan.trace_every,
        device=device,
    )
