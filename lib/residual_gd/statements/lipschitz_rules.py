"""Statements of chapter 3: the rules of the majorant calculus, each on maps where it is the last step."""

import math

import numpy as np

from .. import majorants as rule
from ..activations import ACTIVATIONS, activation
from ..samples import multiply, softmax, transpose
from .balls import FIRST, NORM, Case
from .base import Control, statement


def _norm(A):
    return float(np.linalg.norm(A, 2))


def _norms(T):
    """(stacked, largest sample) spectral norm of T (P, n, columns)."""
    return _norm(T.reshape(-1, T.shape[-1])), float(np.linalg.norm(T, 2, axis=(-2, -1)).max())


def _setting(draw, shapes):
    """Gaussian blocks of these shapes, radii, and the majorant of each block."""
    center = {name: draw.scale(0.1, 3.0) * draw.normal(*shape) for name, shape in shapes.items()}
    radii = np.array([draw.scale(1e-3, 2.0) for _ in shapes])
    return center, radii, _block_majorants(center, radii)


def _block_majorants(center, radii):
    return [rule.block(i, _norm(W), radii[i], len(radii)) for i, W in enumerate(center.values())]


def _scalars(radius=0.5, **values):
    """1 x 1 blocks with these values, one radius for all."""
    center = {name: np.array([[value]]) for name, value in values.items()}
    radii = np.full(len(center), radius)
    return center, radii, _block_majorants(center, radii)


ONE = np.ones((1, 1, 1))


# T W


def _product_case(X, center, radii, blocks):
    T = rule.product(rule.constant(*_norms(X), len(radii)), blocks[0])
    return Case(lambda at: multiply(multiply(X, at["a"]), at["b"]), rule.product(T, blocks[1]), center, radii)


@statement(
    "lem-majorant-product",
    kind="lemma",
    title="Product with a shared matrix",
    chapter="lipschitz",
    hypotheses=("majorants of T and of W on Ball(rho)", "the same W for every sample"),
    sharp=True,
)
def product(draw):
    d, k, columns = (draw.integer(1, 4) for _ in range(3))
    X = draw.normal(draw.integer(1, 3), draw.integer(1, 4), d)
    return _product_case(X, *_setting(draw, {"a": (d, k), "b": (k, columns)})).random(draw)


@product.ascent
def _(rng):
    return _product_case(ONE, *_scalars(a=rng.uniform(0.1, 2.0), b=rng.uniform(0.1, 2.0))).ascend(rng)


@product.control
def _(rng):
    center, radii, blocks = _scalars(a=1.0, b=1.0)
    at_start = [rule.block(i, 1.0, 0.0, 2) for i in range(2)]
    good = _product_case(ONE, center, radii, blocks)
    bad = Case(good.value, _product_case(ONE, center, radii, at_start).bound, center, radii)
    worst = next(c for c in bad.ascend(rng) if c.what == FIRST)
    return Control("norms taken at theta_0 only", worst.measured, worst.bound, "change of T W")


# S_p T_p and T_p W T_p^T


def _logits(X, at):
    T = multiply(X, at["a"])
    return T @ at["b"] @ transpose(at["c"]) @ transpose(T)


def _logits_case(X, center, radii, blocks):
    T = rule.product(rule.constant(*_norms(X), len(radii)), blocks[0])
    bound = rule.logits(T, rule.product(blocks[1], blocks[2]))
    return Case(lambda at: _logits(X, at), bound, center, radii, diagonal=True)


def _attention_case(X, center, radii, blocks):
    S = _logits_case(X, center, radii, blocks).bound
    T = rule.product(rule.constant(*_norms(X), len(radii)), blocks[3])
    return Case(lambda at: _logits(X, at) @ multiply(X, at["d"]), rule.attention(S, T), center, radii)


@statement(
    "lem-majorant-attention",
    kind="lemma",
    title="Attention and logits",
    chapter="lipschitz",
    hypotheses=("majorants of S, T and W on Ball(rho)", "t bounds the stack, t_hat every sample"),
    sharp=True,
)
def attention(draw):
    d, k, j, columns = (draw.integer(1, 3) for _ in range(4))
    X = draw.normal(draw.integer(1, 3), draw.integer(1, 4), d)
    shapes = {"a": (d, k), "b": (k, j), "c": (k, j)}
    with_values = _attention_case(X, *_setting(draw, shapes | {"d": (d, columns)}))
    return *_logits_case(X, *_setting(draw, shapes)).random(draw), *with_values.random(draw)


@attention.ascent
def _(rng):
    values = dict(zip("abcd", rng.uniform(0.1, 2.0, 4), strict=True))
    case = _attention_case(ONE, *_scalars(**values))
    del values["d"]
    logits = _logits_case(ONE, *_scalars(**values))
    return *case.ascend(rng, share=0.002, steps=700), *logits.ascend(rng, share=0.002, steps=700)


@attention.control
def _(rng):
    # four equal samples x = 1: every logit moves by the full step of W, the stack of logits by twice as much
    X, step = np.ones((4, 1, 1)), 0.1
    T = rule.constant(1.0, 1.0, 1)
    wrong = rule.logits(T, rule.block(0, 1.0, step, 1)).first @ [step]
    measured = np.linalg.norm((X * step) @ transpose(X))
    return Control("t_hat in place of t, 4 equal samples", measured, wrong, "change of G")


# softmax


def _softmax_case(X, center, radii, blocks):
    def logits(at):
        return _logits(X, {"a": np.eye(X.shape[-1])} | at)

    G = rule.logits(rule.constant(*_norms(X), len(radii)), rule.product(*blocks))
    s_max = rule.largest_weight(softmax(logits(center)).max(), G, radii)
    bound = rule.softmax(G, X.shape[1], s_max)
    return Case(lambda at: softmax(logits(at)), bound, center, radii, diagonal=True)


@statement(
    "lem-majorant-softmax",
    kind="lemma",
    title="Attention matrix",
    chapter="lipschitz",
    hypotheses=("a majorant of the logits on Ball(rho)", "s_max bounds the weights on the whole ball"),
    sharp=True,
)
def attention_softmax(draw):
    d, k = draw.integer(1, 3), draw.integer(1, 3)
    X = draw.normal(draw.integer(1, 3), draw.integer(1, 5), d)
    return _softmax_case(X, *_setting(draw, {"b": (d, k), "c": (d, k)})).random(draw)


@attention_softmax.ascent
def _(rng):
    # two opposite tokens and logits near 0: both rows are (1/2, 1/2) and are moved along (1, -1)
    X = np.array([[[1.0], [-1.0]]])
    case = _softmax_case(X, *_scalars(0.05, b=0.0, c=rng.uniform(0.5, 2.0)))
    return case.ascend(rng, share=0.005)


@attention_softmax.control
def _(rng):
    n, moved = 10, np.zeros(10)
    moved[2:] = -20.0
    gamma = rule.softmax_constants(1.0 / n)[0]  # uniform attention at theta_0
    step = 1e-3 * np.eye(n)[0] - 1e-3 * np.eye(n)[1]
    measured = np.linalg.norm(softmax(moved + step) - softmax(moved))
    return Control(
        "s_max taken at theta_0 only",
        measured,
        gamma * np.linalg.norm(step),
        "change of S",
    )


# phi


def _activation_case(phi, X, center, radii, blocks):
    E = rule.product(rule.product(rule.constant(*_norms(X), len(radii)), blocks[0]), blocks[1])
    bound = rule.activate(E, phi.l_phi, phi.b_phi)
    return Case(lambda at: phi(multiply(multiply(X, at["a"]), at["b"])), bound, center, radii)


@statement(
    "lem-majorant-activation",
    kind="lemma",
    title="Activation",
    chapter="lipschitz",
    hypotheses=(
        "a majorant of E on Ball(rho)",
        "|phi'| <= l_phi",
        "second order: phi twice differentiable, |phi''| <= b_phi",
    ),
    sharp=True,
)
def activated(draw):
    phi = ACTIVATIONS[draw.choice(tuple(ACTIVATIONS))]
    d, k, m = (draw.integer(1, 4) for _ in range(3))
    X = draw.normal(draw.integer(1, 3), draw.integer(1, 4), d)
    return _activation_case(phi, X, *_setting(draw, {"a": (d, k), "b": (k, m)})).random(draw)


@activated.ascent
def _(rng):
    # near the place where phi' is largest (for GELU sqrt 2)
    name, place = [("gelu", math.sqrt(2.0)), ("tanh", 0.0), ("relu", 1.0)][int(rng.integers(3))]
    return _activation_case(activation(name), ONE, *_scalars(0.1, a=place, b=1.0)).ascend(rng, share=0.01, steps=500)


@activated.control
def _(rng):
    # E = W, one number, has e_2 = 0; with b_phi = 0 the rule says that A has no mixed difference at all
    phi, step = activation("relu"), 1e-3
    case = _activation_case(phi, ONE, *_scalars(0.1, a=1.0, b=0.0))
    wrong = rule.activate(rule.block(0, 0.0, 2 * step, 1), phi.l_phi, 0.0).second[0, 0] * step**2
    left, middle, right = (case.value({"a": np.eye(1), "b": np.array([[w]])}) for w in (-step, 0.0, step))
    measured = abs((right - 2 * middle + left).item())
    return Control("ReLU with b_phi = 0, across a kink", measured, wrong, "second difference of A")


# anchoring


@statement(
    "lem-majorant-anchoring",
    kind="lemma",
    title="Anchoring",
    chapter="lipschitz",
    hypotheses=("t_1 bounds differences of T on Ball(rho) (on a convex set a bound of DT does)",),
    sharp=True,
)
def anchoring(draw):
    phi = ACTIVATIONS[draw.choice(tuple(ACTIVATIONS))]
    d, k, m = (draw.integer(1, 4) for _ in range(3))
    X = draw.normal(draw.integer(1, 3), draw.integer(1, 4), d)
    return _anchored_case(phi, X, *_setting(draw, {"a": (d, k), "b": (k, m)})).random(draw)


def _anchored_case(phi, X, center, radii, blocks):
    case = _activation_case(phi, X, center, radii, blocks)
    bound = rule.anchor(case.bound, *_norms(case.value(center)), radii)
    return Case(case.value, bound, center, radii)


@anchoring.ascent
def _(rng):
    center, radii, blocks = _scalars(0.01, a=rng.uniform(0.5, 2.0), b=rng.uniform(0.5, 2.0))
    return _anchored_case(activation("relu"), ONE, center, radii, blocks).ascend(rng, NORM, share=0.001)


@anchoring.control
def _(rng):
    def steep(w):
        return np.clip(w, 0.0, 1.0)

    # the set w <= 0 or w >= 1, start at w = -1: the derivative is 0 on all of it, and t_1 = 0 bounds no difference
    dropped = "t_1 bounds the derivative only, on a set of two pieces"
    return Control(dropped, abs(steep(2.0)), abs(steep(-1.0)), "norm of T")
