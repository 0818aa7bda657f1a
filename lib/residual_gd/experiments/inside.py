"""What happens inside the network of chapter 8, by layer: how alike tokens and sentences are, ranks, gradients."""

import copy

import numpy as np
import torch
from torch.nn import functional

from ..matrices import sigma_max, sigma_min, stable_rank
from ..validation import require


def views(model, tokens) -> dict[str, list[float]]:
    """Views of the states of ``tokens``, a list of P >= 2 arrays with at least 2 tokens each, computed in float64.

    Of T_0, ..., T_L (lists of L + 1 numbers):
    token_cosine: mean cosine of two tokens of a sentence, over sentences; 1 when all its tokens point one way.
    sentence_cosine: mean cosine of the last tokens of two sentences; 1 when the classifier sees no difference.
    stable_rank: mean of ||T||_F^2 / ||T||^2 over sentences.

    Of Z_1, ..., Z_L, the outputs of attention with their skip (L numbers):
    ratio: min_p sigma_min(Z_p)^2 / max_p ||Z_p|| over the sentences p, sigma_min being the n-th singular value.
    ratio_median: the median over p of sigma_min(Z_p)^2 / ||Z_p||.
    A sigma_min(Z_p) below about 1e-16 ||Z_p|| is rounding, so that ratios below about 1e-32 ||Z_p|| mean 0.
    """
    tokens = _checked(tokens)
    exact = copy.deepcopy(model).to("cpu", torch.float64)
    found = {name: [] for name in ("token_cosine", "sentence_cosine", "stable_rank", "ratio", "ratio_median")}
    with torch.no_grad():
        sentences = [exact.states(row[None]) for row in tokens]
    T = [[T_0[0].numpy() for T_0, _ in sentences]]
    T += [[layers[l][1][0].numpy() for _, layers in sentences] for l in range(model.layers)]
    for states in T:
        found["token_cosine"].append(float(np.mean([_mean_cosine(state) for state in states])))
        found["sentence_cosine"].append(float(_mean_cosine(np.stack([state[-1] for state in states]))))
        found["stable_rank"].append(float(np.mean([stable_rank(state) for state in states])))
    for l in range(model.layers):
        Z = [layers[l][0][0].numpy() for _, layers in sentences]
        low, high = (np.array([norm(z) for z in Z]) for norm in (sigma_min, sigma_max))
        found["ratio"].append(float(low.min() ** 2 / high.max()))
        found["ratio_median"].append(float(np.median(low**2 / high)))
    return found


def gradient_norms(model, tokens, lengths, labels) -> list[float]:
    """Norm of the loss's gradient with respect to the parameters of each layer, on one batch; L numbers."""
    loss = functional.cross_entropy(model(tokens, lengths), labels)
    norms = []
    for block in model.h:
        parts = torch.autograd.grad(loss, list(block.parameters()), retain_graph=True)
        norms.append(float(sum(part.double().square().sum() for part in parts)) ** 0.5)
    return norms


def _mean_cosine(rows):
    """Mean cosine of two different rows of (n, d)."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    n = len(unit)
    return (np.sum(unit @ unit.T) - n) / (n * (n - 1))


def _checked(tokens):
    require(len(tokens) >= 2, "tokens", "at least 2 sentences", len(tokens))
    for number, row in enumerate(tokens):
        require(len(row) >= 2, "tokens", "at least 2 tokens a sentence", f"{len(row)} in sentence {number}")
    return [torch.as_tensor(np.asarray(row), dtype=torch.long) for row in tokens]
