"""Statements of chapter 5 that follow from the rate theorems: closed forms, restart, the head alone, optimality."""

import math

import numpy as np

from ..certificates import certify
from ..descent import descend
from ..gram import gram
from ..matrices import condition_number, sigma_max, sigma_min
from ..pl_inequality import projected_pl
from ..samples import stack
from ..transformer import forward
from .base import Control, Draw, at_least, at_most, statement
from .certified import certified, compare, follow, nothing, start, tau_for, with_residual
from .instances import SMOOTH, Instance, climb, network
from .rate_theorem import SIZES, left_behind, steepest


@statement(
    "cor-closed-descent",
    kind="corollary",
    title="Closed form for smooth activations",
    chapter="rate",
    hypotheses=(
        "phi with bounded phi''",
        "||R_0|| <= sigma_min(H_0)^2 / (8 Lambda(r)), r = 4 ||R_0|| / sigma",
        "mu = 1 / M(r)",
    ),
    starred=True,
)
def closed_descent(draw):
    found = certified(start(draw, deep=True), "closed-descent", rtol=0.3)
    return nothing() if found is None else compare(found)


@closed_descent.ascent
def _(rng):
    return steepest("closed-descent", ("gelu",), rng)


@closed_descent.control
def _(rng):
    # N = 2 rows, d = 1 feature: the smallest of min(N, d) singular values for the N-th, which is 0
    at = start(Draw(rng), activations=("gelu",), head=False, beta=1.0, P=1, n=2, d=1, d_k=1, m=1, c=1)
    H = stack(forward(*at.parts[:3]).H)
    at = with_residual(Instance(*at.parts[:3], np.linalg.svd(H)[0][:, -1].reshape(1, 2, 1)), 1e-4)
    # M is nearly ||H||^2 at so small a residual
    step = 1.0 / sigma_max(H) ** 2
    return left_behind("N = 2 > d = 1, the only singular value of H for the second", follow(at, step), 1.0 - 0.25)


@statement(
    "cor-closed-lipschitz",
    kind="corollary",
    title="Closed form for ReLU",
    chapter="rate",
    hypotheses=("phi Lipschitz (ReLU)", "W_U = 0", "||Y|| <= sigma_min(H_0)^2 / (8 Lambda(r)), r = ||Y|| / sigma"),
)
def closed_lipschitz(draw):
    at = start(draw, activations=("relu", *SMOOTH), head=False, deep=True)
    found = certified(at, "closed-lipschitz", tau_for(draw, "closed-lipschitz"), rtol=0.3)
    return nothing() if found is None else compare(found)


@closed_lipschitz.ascent
def _(rng):
    return steepest("closed-lipschitz", ("relu",), rng)


@closed_lipschitz.control
def _(rng):
    at = start(Draw(rng), activations=("relu",), head=False, beta=1.0, **SIZES)
    found = certified(at, "closed-lipschitz")
    run = follow(with_residual(at, 3e4 * found.residual_norm), found.step)
    return left_behind("||Y|| 30,000 times the bound", run, found.rate)


@statement(
    "prop-rate-in-z",
    kind="proposition",
    title="The rate in terms of Z",
    chapter="rate",
    hypotheses=("phi(0) = 0", "l_phi ||Z_0 W_1||_F ||W_2|| <= beta_F sigma_min(Z_0) / 2, beta_F > 0", "N <= d"),
)
def rate_in_z(draw):
    at = network(
        draw,
        wide=True,
        activations=("gelu", "tanh", "relu"),
        beta_attention=draw.real(0.0, 1.5),
        beta_ffn=draw.real(0.1, 1.5),
    )
    values = forward(*at.parts[:3])
    Z, W_1, W_2 = stack(values.Z), at.parameters["W_1"], at.parameters["W_2"]
    branch = at.transformer.activation.l_phi * np.linalg.norm(Z @ W_1) * sigma_max(W_2)
    allowed = 0.5 * at.transformer.beta_ffn * sigma_min(Z)
    # shrink W_2 until the hypothesis holds, with equality half of the time
    W_2 = W_2 * (draw.choice((1.0, draw.real(0.0, 1.0))) * allowed / branch)
    return z_comparisons(Z, W_1, W_2, at.transformer.beta_ffn, at.transformer.activation)


def z_comparisons(Z, W_1, W_2, beta, phi):
    """sigma_min(H), ||H|| and the factor of the closed Lipschitz form against their bounds in terms of Z."""
    H = phi(Z @ W_1) @ W_2 + beta * Z
    sigma, norm, kappa = float(sigma_min(H)), float(sigma_max(H)), float(condition_number(Z))
    step = 1.0 / (norm + sigma / 8.0) ** 2
    # log of the factor: at least as negative as claimed
    factor, claimed = 2.0 * math.log1p(-0.625 * step * sigma**2), 2.0 * math.log1p(-0.054 / kappa**2)
    noise = 1e-12 * beta * float(sigma_max(Z))
    return (
        at_least(sigma, 0.5 * beta * float(sigma_min(Z)), "sigma_min(H) / (beta_F sigma_min(Z) / 2)", atol=noise),
        at_most(norm, 1.5 * beta * float(sigma_max(Z)), "||H|| / (1.5 beta_F ||Z||)"),
        at_least(-factor, -claimed, "log of the factor", atol=1e-12),
    )


@rate_in_z.ascent
def _(rng):
    # Z diagonal with equal singular values; climb over W_1 and W_2 of the largest size that is allowed
    Z, beta, phi = np.eye(2), 1.0, network(Draw(rng), activations=("relu",)).transformer.activation

    def parts(z):
        W_1, W_2 = z[:4].reshape(2, 2), z[4:].reshape(2, 2)
        return W_1, W_2 * (0.5 / max(np.linalg.norm(Z @ W_1) * sigma_max(W_2), 1e-9))

    z, _ = climb(lambda z: z_comparisons(Z, *parts(z), beta, phi)[0].ratio, rng.standard_normal(8), rng, steps=800)
    return z_comparisons(Z, *parts(z), beta, phi)


@rate_in_z.control
def _(rng):
    # a branch twice as strong as allowed, aligned against one row of Z = I: that row of H vanishes
    phi = network(Draw(rng), activations=("relu",)).transformer.activation
    W_1 = np.array([[0.0], [1.0]])
    W_2 = np.array([[0.0, -1.0]])
    sigma = float(sigma_min(phi(W_1) @ W_2 + np.eye(2)))
    return Control("l_phi ||Z W_1||_F ||W_2|| = 1, twice the bound, Z = I", 0.5, sigma, "claimed sigma_min(H)")


@statement(
    "prop-restart",
    kind="proposition",
    title="Certifying the tail",
    chapter="rate",
    hypotheses=(
        "any theta_k in place of theta_0",
        "to pass in the end (descent, smooth and kernel form): theta_k converges, R_k -> 0, alpha bounded below",
    ),
)
def restart(draw):
    # a start beyond its basin that gradient descent solves all the same: certify where it has got to
    form = draw.choice(("descent", "smooth", "kernel"))
    at = start(draw, activations=("gelu", "tanh"), P=1, n=draw.integer(1, 2), c=1)
    found = certified(at, form)
    if found is None:
        return nothing()
    at = with_residual(at, min(1.0, 8.0 * found.residual_norm))
    step = 0.5 / float(np.linalg.eigvalsh(gram(*at.parts[:3]))[-1])
    theta, tail = at.parameters, certify(*at.parts, form=form)

    def parts(theta):
        return at.transformer, theta, at.X, at.Y

    for doubling in range(10):
        if tail.holds:
            break
        steps = 2**doubling  # few at first: ask before the loss is so small that rounding hides everything
        run = descend(*parts(theta), steps=steps, step=step, spectra=False, trace_every=steps, on_divergence="mark")
        if run.diverged >= 0:
            return nothing()  # the statement supposes that theta_k converges
        theta = run.parameters
        tail = certify(*parts(theta), form=form)
    if not tail.holds and tail.residual_norm > 1e-4 * found.residual_norm:
        return nothing()  # gradient descent has not got far enough within the steps tried
    if not tail.holds:
        return at_most(1.0, 0.0, "tail not certified although R_k is ten thousand times smaller than the basin")
    return compare(tail)


@restart.control
def _(rng):
    # the Lipschitz form: its omega does not shrink with R_k, so that no restart helps a large head
    at = start(Draw(rng), activations=("relu",), beta=1.0, scales={"W_U": 0.0}, **SIZES)
    at = Instance(at.transformer, at.parameters | {"W_U": np.array([[2.0], [1.0]])}, at.X, at.Y)
    at = with_residual(at, 1e-9)
    found = certify(*at.parts, form="lipschitz")
    return Control("the Lipschitz form with a head of order one, at ||R_k|| = 1e-9", found.omega, found.alpha, "omega")


@statement(
    "prop-head-only",
    kind="proposition",
    title="Training the head alone",
    chapter="rate",
    hypotheses=("H != 0, trunk frozen", "0 < mu < 2 / ||H||^2"),
    sharp=True,
)
def head_only(draw):
    at = network(draw, activations=(*SMOOTH, "relu"), deep=True)
    H = stack(forward(*at.parts[:3]).H)
    if np.linalg.norm(H) < 1e-6:  # the statement excludes H = 0
        return nothing()
    return head_comparison(at, draw.real(0.05, 1.95))


def head_comparison(at, fraction, steps=12):
    """Phi_k - Phi_inf against factor^k (Phi_0 - Phi_inf), the worst k."""
    H = stack(forward(*at.parts[:3]).H)
    found = projected_pl(H, stack(at.Y))
    step = fraction / found.largest
    factor = found.head_only_factor(step)
    loss = follow(at, step, steps, wanted=("W_U",)).loss
    excess, noise = loss - found.floor, 1e-12 * loss[0]
    bound = factor ** np.arange(len(loss)) * excess[0]
    ratios = (excess[1:] - noise) / (bound[1:] + noise)
    return at_most(float(np.max(ratios)), 1.0, "(Phi_k - Phi_inf) / bound")


@head_only.ascent
def _(rng):
    at = network(Draw(rng), P=1, n=3, d=3, d_k=1, m=2, c=1, beta=1.0, activations=("gelu",), scales={"W_U": 0.0})
    y, _ = climb(
        lambda y: head_comparison(Instance(*at.parts[:3], np.asarray(y).reshape(1, 3, 1)), 1.0).ratio,
        np.linalg.svd(stack(forward(*at.parts[:3]).H))[0][:, -1] + 0.1 * rng.standard_normal(3),
        rng,
        steps=60,
        spread=0.1,
    )
    return head_comparison(Instance(*at.parts[:3], np.asarray(y).reshape(1, 3, 1)), 1.0)


@head_only.control
def _(rng):
    at = network(Draw(rng), P=1, n=3, d=3, d_k=1, m=2, c=1, beta=1.0, activations=("gelu",))
    H = stack(forward(*at.parts[:3]).H)
    run = follow(at, 2.2 / sigma_max(H) ** 2, 60, wanted=("W_U",))
    return Control("the step 2.2 / ||H||^2, after 60 steps", run.loss[-1], run.loss[0], "Phi_k")
