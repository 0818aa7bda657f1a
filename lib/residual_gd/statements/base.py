"""The ledger: every numbered statement with its hypotheses, its check and its negative control.

A chapter's file registers its statements:

    @statement("lem-softmax-jacobian", kind="lemma", title="Softmax Jacobian", chapter="lipschitz",
               hypotheses=("n >= 2",), sharp=True)
    def softmax_jacobian(draw):                      # one random instance
        s = ...
        return at_most(sigma_max(Gamma(s)), 0.5, "norm of the Jacobian")

    @softmax_jacobian.ascent                         # optional: climbs towards the worst case
    def _(rng): return at_most(...)

    @softmax_jacobian.control                        # drops one hypothesis; its conclusion must fail
    def _(rng): return Control("without normalization, at g = (3, 0)", measured=20.1, bound=0.5)

``check(id)`` runs instances and ascents and prints one line; ``breaks(id)`` runs the negative control.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..validation import one_of, positive_int, require

KINDS = ("lemma", "proposition", "theorem", "corollary")
CHAPTERS = ("vectorization", "lipschitz", "local-convexity", "rate", "rank", "beyond")
LEDGER: dict[str, "Statement"] = {}


@dataclass(frozen=True)
class Comparison:
    """One inequality ``measured <= bound``, up to rounding: measured <= bound (1 + rtol) + atol.

    ``identity`` marks an equality: ``measured`` is then a relative error and ``bound`` what rounding may make of it.
    """

    measured: float
    bound: float
    what: str = ""
    rtol: float = 1e-9
    atol: float = 0.0
    identity: bool = False

    @property
    def holds(self) -> bool:
        return bool(self.measured <= self.bound * (1.0 + self.rtol) + self.atol)

    @property
    def ratio(self) -> float:
        """measured / bound (0/0 counts as 0, a positive number over 0 as infinite unless within ``atol``)."""
        if self.bound > 0:
            return float(self.measured / self.bound)
        return 0.0 if self.holds else math.inf


def at_most(measured, bound, what="", *, rtol=1e-9, atol=0.0) -> Comparison:
    """The claim measured <= bound."""
    return Comparison(float(measured), float(bound), what, rtol, float(atol))


def at_least(measured, bound, what="", *, rtol=1e-9, atol=0.0) -> Comparison:
    """The claim measured >= bound, stored with the sides exchanged, so that a ratio of 1 means no slack."""
    return Comparison(float(bound), float(measured), what, rtol, float(atol))


def equal(left, right, what="", *, tolerance=1e-9, scale=None) -> Comparison:
    """The claim left = right (arrays or numbers): Frobenius distance / ``scale`` (default: the larger norm)."""
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    require(left.shape == right.shape, "left", f"shape {right.shape}", f"shape {left.shape}")
    if scale is None:
        scale = max(np.linalg.norm(left), np.linalg.norm(right))
    error = np.linalg.norm(left - right) / scale if scale > 0 else 0.0
    return Comparison(float(error), tolerance, what, identity=True)


@dataclass(frozen=True)
class Control:
    """A negative control: with one hypothesis dropped, the conclusion ``measured <= bound`` is false.

    ``dropped`` says in words what was dropped and where; ``quantity`` names what was measured.
    """

    dropped: str
    measured: float
    bound: float
    quantity: str = "measured"

    @property
    def fails(self) -> bool:
        """True if the conclusion fails clearly (by more than one part in a million), as it should."""
        return bool(self.measured > self.bound + 1e-6 * abs(self.bound))

    @property
    def sides(self) -> tuple[float, float]:
        """(measured, bound), with 0 for a side that is rounding beside the other: below 1e-12 of it."""
        size = max(abs(self.measured), abs(self.bound)) if math.isfinite(self.measured) else 1.0
        measured, bound = (side if abs(side) > 1e-12 * size else 0.0 for side in (self.measured, self.bound))
        return measured, bound


class Draw:
    """Draws an instance from a Generator; the tests replace the scalar draws by Hypothesis's, which shrink."""

    def __init__(self, rng):
        self.rng = rng

    def integer(self, low, high):
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low, high):
        """A real number in [low, high]."""
        return float(self.rng.uniform(low, high))

    def scale(self, low, high):
        """A positive real number in [low, high], uniform in its logarithm."""
        return float(math.exp(self.real(math.log(low), math.log(high))))

    def choice(self, options):
        """One of ``options``."""
        return options[self.integer(0, len(options) - 1)]

    def normal(self, *shape):
        """An array of independent standard normal numbers."""
        return self.rng.standard_normal(shape)


@dataclass
class Statement:
    """A numbered statement. ``instance``, ``worst`` and ``broken`` are the functions of the module's docstring."""

    id: str
    kind: str
    title: str
    chapter: str
    hypotheses: tuple[str, ...]
    instance: Callable
    sharp: bool = False
    starred: bool = False
    worst: Callable | None = field(default=None)
    broken: Callable | None = field(default=None)

    def ascent(self, function):
        """Register the search for the worst case: a function of a Generator that returns a Comparison."""
        self.worst = function
        return function

    def control(self, function):
        """Register the negative control: a function of a Generator that returns a Control."""
        self.broken = function
        return function


def statement(id, *, kind, title, chapter, hypotheses, sharp=False, starred=False):
    """Decorator that registers a statement; the function draws one instance and returns its Comparison(s).

    sharp: the ascent must reach 99 % of the bound. ValueError for an id that is taken or an unknown kind or chapter.
    """
    one_of(kind, KINDS, "kind")
    one_of(chapter, CHAPTERS, "chapter")
    require(id not in LEDGER, "id", "a new id", f"{id!r}, which is registered")

    def register(instance):
        LEDGER[id] = Statement(id, kind, title, chapter, tuple(hypotheses), instance, sharp, starred)
        return LEDGER[id]

    return register


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: the worst comparison of all instances and ascents."""

    id: str
    instances: int
    ascents: int
    worst: Comparison
    holds: bool
    sharp: bool

    def __str__(self):
        tried = f"{self.instances} instances" + (f", {self.ascents} ascents" if self.ascents else "")
        if self.worst.identity:
            found = f"equal to {self.worst.bound:.0e}" if self.holds else f"relative error {self.worst.measured:.1e}"
        else:
            found = f"worst measured/bound {_ratio(self.worst.ratio)}"
        return f"{'holds' if self.holds else 'FAILS':6s} {self.id}   {tried}   {found}"


def _ratio(ratio):
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.0e}" if ratio > 0 else "0"


def comparisons(outcome) -> tuple[Comparison, ...]:
    """The comparisons of an instance, which may return one or several."""
    return (outcome,) if isinstance(outcome, Comparison) else tuple(outcome)


def find(id) -> Statement:
    """The statement of this id; ValueError for an unknown one."""
    return LEDGER[one_of(id, LEDGER, "id")]


def verify(id, *, instances=50, ascents=4, seed=0) -> Verdict:
    """Check a statement on random instances and, where it has one, by ascents to the worst case.

    A statement that claims to be sharp holds only if the ascents reach 99 % of its bound.
    """
    claim = find(id)
    positive_int(instances, "instances")
    ascents = positive_int(ascents, "ascents") if claim.worst else 0
    rng = np.random.default_rng(seed)
    found = [c for _ in range(instances) for c in comparisons(claim.instance(Draw(rng)))]
    climbed = [c for _ in range(ascents) for c in comparisons(claim.worst(rng))]
    # identities and inequalities have different scales: report an inequality where there is one
    every = found + climbed
    failing = [c for c in every if not c.holds]
    worst = max(failing or [c for c in every if not c.identity] or every, key=lambda c: c.ratio)
    reached = not claim.sharp or max((c.ratio for c in climbed), default=0.0) >= 0.99
    return Verdict(id, instances, ascents, worst, not failing and reached, claim.sharp)


def check(id, *, instances=50, ascents=4, seed=0):
    """Print in one line whether a statement holds, on how many instances, and the worst slack measured / bound."""
    print(verify(id, instances=instances, ascents=ascents, seed=seed))


def run_control(id, *, seed=0) -> Control:
    """The outcome of a statement's negative control; ValueError if it has none."""
    claim = find(id)
    require(claim.broken is not None, "id", "a statement with a negative control", repr(id))
    return claim.broken(np.random.default_rng(seed))


def breaks(id, *, seed=0):
    """Print how the conclusion of a statement fails when a hypothesis is dropped."""
    outcome = run_control(id, seed=seed)
    verdict = "fails, as it should" if outcome.fails else "DOES NOT FAIL"
    measured, bound = outcome.sides
    print(f"{verdict}   {outcome.dropped}: {outcome.quantity} {measured:.3g} > {bound:.3g}")
