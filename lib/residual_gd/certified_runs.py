"""A certified run: gradient descent with the certificate's step, held against its envelope and radii (chapter 5)."""

import math
from dataclasses import dataclass, field

import numpy as np

from .certificates import Certificate
from .descent import Trace, descend
from .rate_forms import EPS
from .validation import positive_int, require


@dataclass(frozen=True, eq=False)
class CertifiedRun:
    """What gradient descent did under a certificate.

    certificate, trace: as run. envelope: (K,) its values at the traced iterations. floor: N c (eps ||Y||)^2, the
    rounding floor of Phi; below it nothing is compared. worst_ratio: largest Phi_k / max(envelope_k, floor).
    moved: for each block, the largest distance from the start over its radius; in the two forms with one Euclidean
    ball, "the ball": the distance of all blocks together. measured_rate: factor of Phi per step,
    from the slope of log Phi over the last half above the floor (nan with fewer than 4 points). predicted_rate: the
    theorem's factor.
    """

    certificate: Certificate = field(repr=False)
    trace: Trace = field(repr=False)
    envelope: np.ndarray = field(repr=False)
    floor: float
    worst_ratio: float
    moved: dict[str, float]
    measured_rate: float
    predicted_rate: float

    @property
    def under_envelope(self) -> bool:
        """True if the loss stayed under the envelope at every step, down to the rounding floor."""
        return self.worst_ratio <= 1.0 + 1e-9

    @property
    def inside(self) -> bool:
        """True if no block left its radius (in the Euclidean forms: if their distance together stayed within it)."""
        return max(self.moved.values()) <= 1.0 + 1e-9

    @property
    def log_rate_ratio(self) -> float:
        """log of the predicted factor over log of the measured one: 1 where the theorem is exact."""
        return math.log(self.predicted_rate) / math.log(self.measured_rate)

    def __str__(self):
        start, end = self.trace.loss[0], self.trace.loss[-1]
        return (
            f"{self.trace.iterations[-1]} steps, Phi/Phi_0 = {end / start:.0e}: "
            f"{'under' if self.under_envelope else 'ABOVE'} the envelope, "
            f"blocks {'inside' if self.inside else 'OUTSIDE'} their radii "
            f"(at most {max(self.moved.values()):.2f} of them); "
            f"factor per step predicted {self.predicted_rate:.4f}, measured {self.measured_rate:.4f}, "
            f"log-rate ratio {self.log_rate_ratio:.2f}"
        )


def rounding_floor(Y) -> float:
    """N c (eps ||Y||_F)^2: where rounding takes over from gradient descent.

    This counts rounding errors of the size of the targets. Where the intermediate matrices are much larger than the
    targets, rounding may hold the loss up a little earlier (a few times this floor).
    """
    Y = np.asarray(Y, dtype=float)
    return Y.size * (EPS * float(np.linalg.norm(Y))) ** 2


def run_certified(certificate, *, steps=None, max_steps=20_000, trace_every=1) -> CertifiedRun:
    """Run gradient descent with the certificate's step and compare every traced step with the envelope and the radii.

    steps: by default as many as bring the envelope to the rounding floor, and at most ``max_steps``; the run stops at
    the floor. Raises ValueError for a refused certificate and for ||R_0|| = 0, where there is nothing to run.
    """
    require(isinstance(certificate, Certificate), "certificate", "a Certificate", type(certificate).__name__)
    require(certificate.holds, "certificate", "one that holds", "a refused one")
    require(certificate.loss > 0, "certificate", "a start with Phi > 0", "Phi = 0")
    positive_int(max_steps, "max_steps")
    floor = rounding_floor(certificate.Y)
    if steps is None:
        needed = math.log(max(certificate.loss / floor, 2.0)) / -math.log(certificate.rate) if floor > 0 else max_steps
        steps = max(1, min(max_steps, math.ceil(needed)))
    parts = (certificate.transformer, certificate.parameters, certificate.X, certificate.Y)
    trace = descend(
        *parts,
        steps=steps,
        step=certificate.step,
        trace_every=trace_every,
        spectra=False,
        stop_below=floor,
        label="certified run",
    )
    envelope = certificate.envelope(trace.iterations)
    above = np.maximum(envelope, floor)
    ratios = np.divide(trace.loss, above, out=np.where(trace.loss > 0, np.inf, 0.0), where=above > 0)
    return CertifiedRun(
        certificate=certificate,
        trace=trace,
        envelope=envelope,
        floor=floor,
        worst_ratio=float(np.max(ratios)),
        moved=_moved(certificate, trace),
        measured_rate=measured_factor(trace.iterations, trace.loss, floor),
        predicted_rate=certificate.rate,
    )


def _moved(certificate, trace):
    """Largest distance over the radius: of every block, or of all together where the ball is Euclidean."""
    if certificate.euclidean:
        together = np.sqrt(sum(trace.distances[block] ** 2 for block in certificate.radii))
        return {"the ball": _share(np.max(together), max(certificate.radii.values()))}
    return {block: _share(np.max(trace.distances[block]), radius) for block, radius in certificate.radii.items()}


def _share(distance, radius):
    """distance / radius, 0 where nothing moved."""
    return 0.0 if distance == 0 else float(distance / radius) if radius > 0 else math.inf


def measured_factor(iterations, loss, floor=0.0) -> float:
    """Factor of the loss per step: exp of the slope of log Phi over the last half of the iterations above ``floor``."""
    iterations, loss = np.asarray(iterations), np.asarray(loss)
    above = np.flatnonzero(loss > floor)
    half = above[len(above) // 2 :]
    if len(half) < 4:
        return math.nan
    return float(np.exp(np.polyfit(iterations[half], np.log(loss[half]), 1)[0]))
