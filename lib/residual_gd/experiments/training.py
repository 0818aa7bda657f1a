"""Training of the sentiment classifier (chapter 8): AdamW, a linear schedule with warm-up, batches by length.

A run is a function of its recipe, its sentences and its seed. On a CPU a run that goes on from a checkpoint has
the same numbers, bit for bit, as one that was never interrupted.
"""

import io
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from ..descent import progress_bar
from ..validation import one_of, positive_float, positive_int, require
from .gpt import GPT
from .gpt_weights import load_weights
from .inside import gradient_norms, views

DEPTHS = (2, 6, 10)  # of the paper's experiment
VARIANTS = {"with": 1.0, "without": 0.0}  # the coefficient of both skips
PROBE = 32  # sentences that the views inside look at, with at least 4 tokens each
EVALUATION_BATCH = 256


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that a run depends on but its sentences and its seed.

    layers to weights: the network, see ``GPT`` and ``load_weights``. learning_rate: after the warm-up, which is the
    share ``warmup`` of the steps; then it falls linearly to 0. clip: largest norm of a gradient. batch: sentences a
    step. weight_decay: AdamW's, on matrices only. evaluate: sentences that training errors are measured on after each
    epoch (the first ones; None: all). There is no dropout: the training error is that of the trained function.

    Raises ValueError for bad values, at once or when the network is made.
    """

    layers: int
    beta_attention: float = 1.0
    beta_ffn: float = 1.0
    width: int = 128
    heads: int = 4
    context: int = 64
    layer_norm: bool = True
    init_std: float = 0.02
    shrink: bool = True
    weights: str = "random"
    learning_rate: float = 5e-4
    warmup: float = 0.1
    clip: float = 1.0
    batch: int = 32
    epochs: int = 3
    weight_decay: float = 0.01
    evaluate: int | None = None

    def __post_init__(self):
        positive_int(self.batch, "batch")
        positive_int(self.epochs, "epochs")
        positive_float(self.learning_rate, "learning_rate")
        positive_float(self.clip, "clip")
        require(0 <= self.warmup < 1, "warmup", "a number in [0, 1)", self.warmup)
        require(self.weight_decay >= 0, "weight_decay", "a number >= 0", self.weight_decay)

    def network(self, vocabulary, seed) -> tuple[GPT, str]:
        """The network at its start, and which start that is."""
        names = ("layers", "beta_attention", "beta_ffn", "width", "heads", "context")
        names += ("layer_norm", "init_std", "shrink")
        sizes = {name: getattr(self, name) for name in names}
        model = GPT(vocabulary=vocabulary, rng=np.random.default_rng(seed), **sizes)
        return model, load_weights(model, self.weights)

    def rate(self, step, steps) -> float:
        """The learning rate of step ``step`` (from 0) of ``steps``."""
        rise = max(1, round(self.warmup * steps))
        return self.learning_rate * min((step + 1) / rise, (steps - step) / max(1, steps - rise))


def pair(layers, variant, **options) -> Recipe:
    """The recipe of one of the paper's six networks: 2, 6 or 10 layers, "with" or "without" the two skips."""
    beta = VARIANTS[one_of(variant, VARIANTS, "variant")]
    return Recipe(layers=one_of(layers, DEPTHS, "layers"), beta_attention=beta, beta_ffn=beta, **options)


def train(
    recipe,
    sentences,
    dev=None,
    *,
    seed=0,
    checkpoint=None,
    checkpoint_every=100,
    trace_every=10,
    inside=True,
    device="cpu",
) -> dict:
    """Train a network on ``sentences`` (``Encoded``); the curves of the run, as records keep them.

    Runs of one seed start from the same matrices and see the same batches, whatever the coefficients.
    dev: held-out sentences. checkpoint: a ``Checkpoint`` to go on from and to save to every ``checkpoint_every`` steps.
    inside: look at the states and the gradients before and after. device: "cpu" or "cuda".

    Curves: start (which weights); steps (numbers of the steps done), loss, error and gradient_norm, means over the
    last ``trace_every`` steps of what each step saw before its update; epochs, train_error, dev_error at the ends of
    epochs (and before the first); inside: ``views`` and gradient norms by layer at "start" and "end"; diverged_at: the
    step whose loss was not finite, which ends the run, or -1.

    Raises ValueError for bad input, CheckpointError for a bad checkpoint.
    """
    trace_every = positive_int(trace_every, "trace_every")
    checkpoint_every = positive_int(checkpoint_every, "checkpoint_every")
    one_of(device, ("cpu", "cuda"), "device")
    require(device == "cpu" or torch.cuda.is_available(), "device", "cpu, for there is no CUDA device here", device)
    for encoded, name in ((sentences, "sentences"), (dev, "dev")):
        require(encoded is None or len(encoded) > 0, name, "at least one sentence", "none")
    work = _Run(recipe, sentences, dev, seed, device, inside)
    steps = recipe.epochs * work.per_epoch
    if checkpoint is not None and (saved := checkpoint.load()) is not None:
        work.restore(saved)
    else:
        work.begin()
    label = f"{recipe.layers} layers, beta {recipe.beta_attention:g}, seed {seed}"
    for step in progress_bar(range(work.done, steps), steps - work.done, label):
        epoch, place = divmod(step, work.per_epoch)
        if not work.step(recipe.rate(step, steps), epoch, place):
            break
        if work.done % trace_every == 0 or work.done == steps:
            work.trace()
        if work.done % work.per_epoch == 0:
            work.evaluate()
        if checkpoint is not None and work.done % checkpoint_every == 0 and work.done < steps:
            checkpoint.save(work.state())
    return work.end()


def batches(lengths, batch, rng) -> list[np.ndarray]:
    """Indices of the sentences by batches of similar length, in random order; every sentence once.

    A permutation is sorted by length (equal lengths keep its order), cut, and the batches are permuted.
    """
    order = rng.permutation(len(lengths))
    order = order[np.argsort(np.asarray(lengths)[order], kind="stable")]
    cut = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [cut[i] for i in rng.permutation(len(cut))]


def padded(encoded, chosen, device="cpu"):
    """Tokens (B, n) padded on the right with 0, numbers of tokens (B,) and labels (B,) of the chosen sentences."""
    rows = [encoded.tokens[i] for i in chosen]
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = torch.from_numpy(row)
    labels = torch.as_tensor(encoded.labels[np.asarray(chosen)], dtype=torch.long)
    return tokens.to(device), lengths.to(device), labels.to(device)


@torch.no_grad()
def error(model, encoded, device="cpu") -> float:
    """The share of the sentences that the network classifies wrongly."""
    order = np.argsort([len(row) for row in encoded.tokens], kind="stable")
    wrong = 0
    for i in range(0, len(order), EVALUATION_BATCH):
        tokens, lengths, labels = padded(encoded, order[i : i + EVALUATION_BATCH], device)
        wrong += int((model(tokens, lengths).argmax(dim=1) != labels).sum())
    return wrong / len(encoded)


class _Run:
    """A run under way: network, optimizer, curves, and how many steps are done."""

    def __init__(self, recipe, train, dev, seed, device, inside):
        self.recipe, self.train, self.dev, self.seed, self.device = recipe, train, dev, seed, device
        model, start = recipe.network(train.vocabulary, seed)
        self.model = model.to(device)
        matrices = [p for p in self.model.parameters() if p.ndim == 2]
        vectors = [p for p in self.model.parameters() if p.ndim == 1]
        groups = [
            {"params": matrices, "weight_decay": recipe.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.learning_rate)
        self.done, self.seen, self.order = 0, [], (-1, [])
        self.curves = {"start": start, "steps": [], "loss": [], "error": [], "gradient_norm": []}
        self.curves |= {"epochs": [], "train_error": []} | ({} if dev is None else {"dev_error": []})
        self.curves |= {"inside": {}} if inside else {}
        self.curves["diverged_at"] = -1
        self.lengths = [len(row) for row in train.tokens]
        self.per_epoch = math.ceil(len(train) / recipe.batch)

    def begin(self):
        self.evaluate()
        self._look("start")

    def step(self, rate, epoch, place) -> bool:
        """One step of AdamW; False if the loss is not finite."""
        if self.order[0] != epoch:
            rng = np.random.default_rng([self.seed, 1 + epoch])  # the start of the network takes the seed alone
            self.order = (epoch, batches(self.lengths, self.recipe.batch, rng))
        tokens, lengths, labels = padded(self.train, self.order[1][place], self.device)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        scores = self.model(tokens, lengths)
        loss = functional.cross_entropy(scores, labels)
        if not math.isfinite(loss.item()):
            self.curves["diverged_at"] = self.done
            return False
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        wrong = (scores.argmax(dim=1) != labels).double().mean().item()
        self.seen.append((loss.item(), wrong, norm.item()))
        self.done += 1
        return True

    def trace(self):
        self.curves["steps"].append(self.done)
        for name, values in zip(("loss", "error", "gradient_norm"), zip(*self.seen, strict=True), strict=True):
            self.curves[name].append(math.fsum(values) / len(values))
        self.seen = []

    def evaluate(self):
        self.curves["epochs"].append(self.done / self.per_epoch)
        some = self.train if self.recipe.evaluate is None else self.train.first(self.recipe.evaluate)
        self.curves["train_error"].append(error(self.model, some, self.device))
        if self.dev is not None:
            self.curves["dev_error"].append(error(self.model, self.dev, self.device))

    def _look(self, when):
        if "inside" not in self.curves:
            return
        chosen = [i for i, n in enumerate(self.lengths) if n >= 4][:PROBE]
        require(len(chosen) >= 2, "sentences", "at least 2 of 4 tokens, to look inside", len(chosen))
        found = views(self.model, [self.train.tokens[i] for i in chosen])
        found["gradient_norm"] = gradient_norms(self.model, *padded(self.train, chosen, self.device))
        self.curves["inside"][when] = found

    def end(self):
        if self.curves["diverged_at"] < 0:
            self._look("end")
        return self.curves

    def state(self) -> bytes:
        buffer = io.BytesIO()
        whole = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(whole | {"done": self.done, "seen": self.seen, "curves": self.curves}, buffer)
        return buffer.getvalue()

    def restore(self, saved):
        state = torch.load(io.BytesIO(saved), map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done, self.seen, self.curves = state["done"], state["seen"], state["curves"]
