"""Problem set 5: a student's own month of the weather record, and the runs on it (no question is answered here)."""

from dataclasses import dataclass

import numpy as np

from ..descent import descend
from ..experiments.weather import load_embedded
from ..experiments.windows import Windows, linear_embedding, windows
from ..gram import gram
from ..parameters import Parameters, initialize, stack_runs
from ..samples import stack
from ..transformer import Transformer, forward
from .person import generator

A_DAY = 144  # records, one every ten minutes
RECORD_DAYS = 129  # of the embedded record
DAYS = 30
WINDOWS, TOKENS = 4, 8

BETAS = (0.0, 0.25, 0.5, 1.0)
TAUS = (1.0, 2.0, 4.0)
STEPS = 60
TUNE, REPORT = (0, 1, 2), (3, 4, 5)  # numbers of starts


@dataclass(frozen=True, eq=False)
class Month:
    """Thirty days of the record. rows: which of its 18,576 rows; begins: (4,) where the windows begin in the month."""

    rows: slice
    begins: np.ndarray

    @property
    def begins_in_record(self) -> np.ndarray:
        """The same beginnings, counted from the first row of the whole record: (4,)."""
        return self.rows.start + self.begins


def own_month(student_id) -> Month:
    """The month of one student, drawn from the id.

    Four windows of a day, with the day's last target, lie in the month; they begin on four different days at the same
    time of day, and share no inputs. Every column varies over them. ValueError for an id that ``generator`` refuses.
    """
    rng, values = generator(student_id, "ps5/month"), load_embedded().values
    while True:
        first = A_DAY * int(rng.integers(RECORD_DAYS - DAYS + 1))
        days = np.sort(rng.choice(DAYS - 1, size=WINDOWS, replace=False))
        month = Month(slice(first, first + A_DAY * DAYS), A_DAY * days + int(rng.integers(A_DAY)))
        seen = values[month.begins_in_record[:, None] + A_DAY // TOKENS * np.arange(TOKENS)]
        # the humidity of four foggy days is 100 all the time, and cannot be standardized
        if np.all(seen.std(axis=(0, 1)) > 0.05 * values.std(axis=0)):
            return month


@dataclass(frozen=True, eq=False)
class Experiment:
    """The runs on one month.

    month; windows: cut from the record and standardized. X: (4, 8, 16) the features under a fixed random embedding,
    with positions; Y: (4, 8, 1). network: one layer, one head, d_k = 4, m = 16, ReLU. starts: six parameters, the same
    for every beta.
    """

    month: Month
    windows: Windows
    X: np.ndarray
    Y: np.ndarray
    network: Transformer
    starts: list[Parameters]

    @property
    def scale(self) -> float:
        """1/2 ||Y||_F^2, the loss of the answer zero."""
        return 0.5 * float(np.sum(self.Y**2))

    def train(self, mu, chosen) -> np.ndarray:
        """Loss, divided by ``scale``, after ``STEPS`` steps of gradient descent: (B, S), infinite where a run diverged.

        mu: (B, S) step sizes, a row for each of the B coefficients ``BETAS``. chosen: the numbers, in ``starts``, of
        the S starts. All B S runs go through one batch. ValueError for another shape, and for a step that is not > 0.
        """
        mu = np.asarray(mu, dtype=float)
        if mu.shape != (len(BETAS), len(chosen)):
            raise ValueError(f"mu: expected shape {(len(BETAS), len(chosen))}, got {mu.shape}")
        batch = self.network.with_beta(np.repeat(BETAS, len(chosen)))
        runs = stack_runs([self.starts[s] for s in chosen] * len(BETAS))
        how = {"steps": STEPS, "trace_every": STEPS, "spectra": False, "on_divergence": "mark"}
        trace = descend(batch, runs, self.X, self.Y, step=mu.reshape(-1), **how)
        return trace.loss[-1].reshape(mu.shape) / self.scale

    def features(self, chosen) -> list[list[np.ndarray]]:
        """The output Z (4, 8, 16) of attention at each chosen start: a list for each beta."""
        return [[forward(self.network.with_beta(b), self.starts[s], self.X).Z for s in chosen] for b in BETAS]

    def frozen(self, mu, chosen) -> np.ndarray:
        """What ``train`` would give if J J^T stayed as it is at the start: (B, S). Arguments as for ``train``."""
        found = [[self._frozen(beta, s, mu[b][k]) for k, s in enumerate(chosen)] for b, beta in enumerate(BETAS)]
        return np.array(found) / self.scale

    def _frozen(self, beta, s, mu):
        network, start = self.network.with_beta(beta), self.starts[s]
        eigenvalues, vectors = np.linalg.eigh(gram(network, start, self.X))
        r = vectors.T @ stack(forward(network, start, self.X).F - self.Y).T.reshape(-1)
        return 0.5 * np.sum((1.0 - mu * eigenvalues) ** (2 * STEPS) * r**2)


def own_experiment(student_id) -> Experiment:
    """The experiment of one student: month, embedding and starts are drawn from the id. ValueError for a bad id."""
    month = own_month(student_id)
    cut = windows(load_embedded(), starts=month.begins_in_record)
    X = linear_embedding(cut.features, 16, generator(student_id, "ps5/embedding"))
    network = Transformer(d=16, d_k=4, m=16, c=1, activation="relu")
    rng = generator(student_id, "ps5/starts")
    return Experiment(month, cut, X, cut.Y, network, [initialize(network, rng) for _ in range(6)])
