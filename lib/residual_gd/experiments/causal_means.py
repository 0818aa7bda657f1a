"""Chapter 8: what causal attention does to tokens when all logits are equal, as they nearly are at a small start."""

import numpy as np

from ..validation import positive_int, require


def causal_means(n) -> np.ndarray:
    """The attention matrix (n, n) of equal logits under a causal mask: row i is the mean of the tokens 1, ..., i."""
    n = positive_int(n, "n")
    return np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]


def cosines_of_means(n, layers) -> np.ndarray:
    """Mean cosine of two of n tokens after 0, 1, ..., ``layers`` layers of causal means, without skips: (layers + 1,).

    The tokens start orthogonal and of equal length; before each layer all are scaled to length one, as LayerNorm does.
    After one layer tokens i < j have the cosine sqrt(i / j). Raises ValueError for n < 2.
    """
    n, layers = positive_int(n, "n"), positive_int(layers, "layers")
    require(n >= 2, "n", "at least 2 tokens", n)
    S, gram, found = causal_means(n), np.eye(n), [0.0]
    for _ in range(layers):
        gram = S @ gram @ S.T
        length = np.sqrt(np.diag(gram))
        gram = gram / np.outer(length, length)
        found.append((np.sum(gram) - n) / (n * (n - 1)))
    return np.array(found)
