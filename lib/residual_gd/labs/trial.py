"""One trial of a lab: a network built from a few settings, its certificate, and a run of gradient descent."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..certificates import Certificate, certify
from ..certified_runs import measured_factor, rounding_floor
from ..descent import descend
from ..matrices import sigma_max
from ..parameters import initialize
from ..rank import uniform_loss_floor
from ..samples import stack
from ..transformer import Transformer, forward
from ..validation import finite_float, one_of, positive_float, positive_int, require

C, D_K = 3, 16  # outputs; key width, at most d
WIDEST, ROWS = 256, 96  # so that a trial takes a few seconds
FEWEST, MOST, PART = 30, 300, 10  # steps of gradient descent; steps between two reports of progress
FORMS = ("smooth", "descent", "lipschitz", "kernel")
ACTIVATIONS = ("gelu", "tanh", "softplus", "relu")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a reader may choose; m = d, and W_U = 0 at the start.

    d, n, P: width, tokens in a sample, samples. activation, form, tau: as in ``certify``. beta_attention, beta_ffn:
    coefficients of the two skips. attention: scale of W_Q and W_K at the start; branches: of W_V, W_1 and W_2.
    size: ||R_0||_F. seed: of all random numbers.

    ValueError, with the name of the setting, for one that cannot be used or would take too long.
    """

    d: int = 96
    n: int = 6
    P: int = 3
    activation: str = "gelu"
    form: str = "smooth"
    beta_attention: float = 1.0
    beta_ffn: float = 1.0
    attention: float = 0.05
    branches: float = 0.1
    size: float = 0.1
    tau: float = 1.0
    seed: int = 5

    def __post_init__(self):
        for name in ("d", "n", "P"):
            positive_int(getattr(self, name), name)
        require(self.d <= WIDEST, "d", f"a width of at most {WIDEST}", self.d)
        require(self.P * self.n <= ROWS, "P times n", f"at most {ROWS} rows", f"{self.P} times {self.n}")
        one_of(self.activation, ACTIVATIONS, "activation")
        one_of(self.form, FORMS, "form")
        for name in ("beta_attention", "beta_ffn", "attention", "branches"):
            finite_float(getattr(self, name), name, low=0.0)
        positive_float(self.size, "size")
        positive_float(self.tau, "tau")
        require(isinstance(self.seed, int) and self.seed >= 0, "seed", "a whole number >= 0", repr(self.seed))

    def build(self):
        """(transformer, parameters, X, Y), with ||F_0 - Y||_F = size."""
        rng = np.random.default_rng(self.seed)
        beta = {"beta_attention": self.beta_attention, "beta_ffn": self.beta_ffn}
        net = Transformer(d=self.d, d_k=min(D_K, self.d), m=self.d, c=C, activation=self.activation, **beta)
        X, Y = rng.standard_normal((self.P, self.n, self.d)), rng.standard_normal((self.P, self.n, C))
        scales = dict.fromkeys(("W_Q", "W_K"), self.attention) | dict.fromkeys(("W_V", "W_1", "W_2"), self.branches)
        theta = initialize(net, rng, W_U=0.0, **scales)
        return net, theta, X, forward(net, theta, X).F + self.size * Y / np.linalg.norm(Y)


@dataclass(frozen=True, eq=False)
class Trial:
    """What came out.

    certificate: holds or says what fails. step: mu of the run, the certificate's or, where it was refused,
    tau / ||H_0||^2. iterations, loss: (K,) of the run, with inf from the iteration ``diverged`` on (-1: never).
    envelope: (K,), None where the certificate was refused. floor: where rounding takes over. uniform_floor: of the loss
    for uniform attention without its skip. without: (K,) loss of the same start and step without the attention skip.
    """

    settings: Settings
    certificate: Certificate = field(repr=False)
    step: float
    iterations: np.ndarray = field(repr=False)
    loss: np.ndarray = field(repr=False)
    envelope: np.ndarray | None = field(repr=False)
    diverged: int
    floor: float
    uniform_floor: float
    without: np.ndarray | None = field(repr=False, default=None)

    @property
    def certified(self) -> bool:
        """True if every hypothesis of the theorem holds."""
        return self.certificate.holds

    @property
    def under_envelope(self) -> bool:
        """True if the loss stayed under the envelope, down to the rounding floor."""
        return self.certified and bool(np.all(self.loss <= (1 + 1e-9) * np.maximum(self.envelope, self.floor)))

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        steps = int(self.iterations[-1])
        if self.certified:
            where = "stayed under" if self.under_envelope else "LEFT"
            factor = measured_factor(self.iterations, self.loss, self.floor)
            measured = "" if math.isnan(factor) else f", measured {factor:.4f}"
            return (
                f"Certified. The loss {where} its envelope for {steps} steps. "
                f"Factor per step: proved {self.certificate.rate:.4f}{measured}."
            )
        first, *others = (h.name for h in self.certificate.failed)
        failed = f"{first} fails" + (f", and {len(others)} more" if others else "")
        after = (
            f"Gradient descent with tau / ||H_0||^2 diverges at step {self.diverged}."
            if self.diverged >= 0
            else f"Without a guarantee, with the step tau / ||H_0||^2, the loss goes from {self.loss[0]:.1e} to "
            f"{self.loss[-1]:.1e} in {steps} steps."
        )
        return f"Refused: {failed}. {after}"

    def __str__(self):
        return f"{self.certificate}\n{self.verdict}"


def run(settings, *, compare=False, progress=None) -> Trial:
    """Build, certify and run.

    compare: also run without the attention skip, where there is one. progress: function of the share that is done, from
    0 to 1. ValueError where ``certify`` refuses the settings themselves, as tau > 1 in the smooth form.
    """
    tell = progress or (lambda share: None)
    net, theta, X, Y = settings.build()
    features = float(sigma_max(stack(forward(net, theta, X).H)))
    require(features > 0, "H_0", "features that are not all zero: a skip, or branches > 0", "zero")
    tell(0.1)
    certificate = certify(net, theta, X, Y, form=settings.form, tau=settings.tau)
    tell(0.4)
    step = certificate.step if certificate.holds else settings.tau / features**2
    floor = rounding_floor(Y)
    steps = _steps(certificate, floor)
    compare = compare and settings.beta_attention > 0
    share = 0.3 if compare else 0.6
    loss, diverged = _descend(net, theta, X, Y, step, steps, lambda done: tell(0.4 + share * done))
    without = None
    if compare:
        cut = net.with_beta(beta_attention=0.0, beta_ffn=settings.beta_ffn)
        without, _ = _descend(cut, theta, X, Y, step, steps, lambda done: tell(0.7 + share * done))
    iterations = np.arange(steps + 1)
    envelope = certificate.envelope(iterations) if certificate.holds else None
    return Trial(
        settings, certificate, float(step), iterations, loss, envelope, diverged, floor,
        float(uniform_loss_floor(Y)), without,
    )  # fmt: skip


def _steps(certificate, floor):
    """As many as bring the envelope to the rounding floor, but not too few to see and not too many to wait for."""
    if not certificate.holds or floor <= 0:
        return MOST
    needed = math.log(max(certificate.loss / floor, 2.0)) / -math.log(max(certificate.rate, 1e-6))
    return max(FEWEST, min(MOST, PART * math.ceil(needed / PART)))


def _descend(net, theta, X, Y, step, steps, tell):
    """Losses (steps + 1,) and where the run diverged, -1 if nowhere. Part by part: the method has no memory."""
    losses = np.full(steps + 1, np.inf)
    for k in range(0, steps, PART):
        part = descend(net, theta, X, Y, steps=PART, step=step, spectra=False, on_divergence="mark")
        losses[k : k + len(part.loss)] = part.loss
        if part.diverged >= 0:
            return losses, k + int(part.diverged)
        theta = part.parameters
        tell((k + PART) / steps)
    return losses, -1
