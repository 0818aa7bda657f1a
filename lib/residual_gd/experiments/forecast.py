"""What the trained network of chapter 7 is good for: its error on days that it has not seen, against persistence."""

from dataclasses import dataclass

import numpy as np

from ..transformer import forward
from ..validation import positive_int, require
from .sweeps import beta_sweep, starts
from .windows import linear_embedding, windows

DAY, STRIDE, TOKENS, WIDTH = 144, 18, 8, 32  # records a day and a step; the tokens and the width of setting W1


@dataclass(frozen=True, eq=False)
class Forecast:
    """Errors on held-out days of the last token's forecast, which no later token gives away.

    days: (training, held out). error: (B, S) root mean square error of the network, in the target's unit, for each
    coefficient and seed. persistence: the error of saying that nothing changes. looked_up: (B, S) the network's error
    at the other tokens, whose target the network sees at the token after it.
    """

    betas: tuple[float, ...]
    days: tuple[int, int]
    error: np.ndarray
    persistence: float
    looked_up: np.ndarray

    @property
    def skill(self) -> np.ndarray:
        """1 - (mean square error) / (that of persistence): (B, S); 0 is as good as persistence."""
        return 1.0 - (self.error / self.persistence) ** 2


def forecast(record, *, every=4, betas=(0.0, 1.0), seeds=3, steps=300, embedding_seed=0) -> Forecast:
    """Train setting W1 on days of ``record`` and forecast the temperature on every ``every``-th day, held out.

    Means and scales are those of the training days. Each run takes the step 1 / lambda_max(J J^T) of its start.
    ValueError for bad input, or a record of fewer than ``every`` days.
    """
    every = positive_int(every, "every")
    require(every >= 2, "every", "an integer >= 2", repr(every))
    first = np.arange(0, len(record.times) - DAY, DAY)
    require(len(first) >= every, "record", f"at least {every} days and a record", f"{len(record.times)} records")
    held_out = np.arange(len(first)) % every == every - 1
    train, test = (
        windows(record, samples=1, steps=TOKENS, stride=STRIDE, starts=first[chosen])
        for chosen in (~held_out, held_out)
    )
    X = _embedded(train, train, embedding_seed)
    sweep = beta_sweep(X, train.Y, betas=betas, seeds=seeds, steps=steps, step="fair", spectra=False)
    network, _ = starts(X, train.Y, betas=betas, seeds=seeds)
    batch = network.with_beta(np.repeat(betas, seeds))
    outputs = forward(batch, sweep.trace.parameters, _embedded(test, train, embedding_seed)).F
    truth = test.in_units(test.Y)
    wrong = (train.in_units(outputs) - truth).reshape(len(betas), seeds, *truth.shape)
    column = test.names.index("T")
    now = test.features[:, -1, column] * test.scales[column] + test.means[column]
    return Forecast(
        betas=tuple(betas),
        days=(int(np.sum(~held_out)), int(np.sum(held_out))),
        error=_rms(wrong[..., -1, 0], axis=-1),
        persistence=float(_rms(now - truth[:, -1, 0])),
        looked_up=_rms(wrong[..., :-1, 0], axis=(-2, -1)),
    )


def _embedded(cut, train, seed):
    """The inputs of windows, standardized with the means and scales of ``train``."""
    features = (cut.features * cut.scales + cut.means - train.means) / train.scales
    return linear_embedding(features, WIDTH, np.random.default_rng(seed))


def _rms(values, axis=None):
    return np.sqrt(np.mean(values**2, axis=axis))
