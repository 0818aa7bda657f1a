"""What usual mistakes give, with the sentences that name them: for the messages of problem sets 1 and 2.

Each function returns, for each matrix that is asked for, a dictionary for ``instead`` of ``matches``. The wrong numbers
come from the library, run for a network that is wrong on purpose.
"""

from dataclasses import replace

import numpy as np

from ..jacobian import features_jacobian, jacobian_blocks
from ..samples import contract, stack, stack_attention
from ..transformer import forward, gradient, pullback


def of_forward(net, theta, X):
    """Mistakes in G, S, Z, A and H of the forward pass (set 1, question 2)."""
    at = forward(net, theta, X)
    beta, gamma, values = net.beta_attention, net.beta_ffn, X @ theta["W_V"]
    weights = np.exp(at.G - at.G.max())
    return {
        "G": {
            "the division by the square root of d_k is missing": at.G * net.d_k**0.5,
            "divide by the square root of d_k, not of d": at.G * (net.d_k / net.d) ** 0.5,
            "divide by the square root of d_k, not by d_k": at.G / net.d_k**0.5,
        },
        "S": {"the softmax runs over each row, not each column": weights / weights.sum(axis=-2, keepdims=True)},
        "Z": {
            "the skip beta X is missing": at.Z - beta * X,
            "the skip has the coefficient 1 in your code, whatever beta is": at.Z + (1 - beta) * X,
            "the skip carries X, not X W_V": at.S @ values + beta * values,
            "S is transposed in your product": np.swapaxes(at.S, -1, -2) @ values + beta * X,
        },
        "A": {"the activation is missing": at.E},
        "H": {
            "the skip beta Z is missing": at.H - gamma * at.Z,
            "the skip has the coefficient 1 in your code, whatever beta is": at.H + (1 - gamma) * at.Z,
            "the skip carries Z, not X": at.H + gamma * (X - at.Z),
        },
    }


def of_gradient(net, theta, X, Y):
    """Mistakes in the gradient of every block, and in the adjoint of Z (set 1, questions 3 and 4)."""
    at, right = forward(net, theta, X), gradient(net, theta, X, Y)
    R = at.F - Y
    late = replace(net, activation=_slope_at_activation(net.activation))
    turned = (np.swapaxes(at.S, -1, -2),)
    named = {block: {"this is the mean over the samples; the loss is a sum": right[block] / len(X)} for block in right}
    named["W_U"] |= {
        "this is with F in place of the residual F - Y": gradient(net, theta, X, 0 * Y)["W_U"],
        "only the first sample counts in your sum": at.H[0].T @ R[0],
    }
    named["W_2"] |= {"the left factor in the network is A W_2, not E W_2": _pull(net, theta, at, R, A=at.E)["W_2"]}
    named["W_1"] |= {
        "the slope phi'(E) is missing": pullback(_flat(net), theta, at, R)["W_1"],
        "the slope is taken at A; it belongs at E": pullback(late, theta, at, R)["W_1"],
        "this is with X in place of Z": _pull(net, theta, at, R, Z=X)["W_1"],
    }
    named["W_V"] |= {
        "S stands the wrong way round: the transpose of S X is needed": _pull(net, theta, at, R, S=turned)["W_V"],
        "attention is missing: the left factor of W_V is S X": contract(X, adjoint_of_Z(net, theta, X, R)),
    }
    for block, other in (("W_Q", "W_K"), ("W_K", "W_Q")):
        named[block] |= {
            "the division by the square root of d_k is missing": right[block] * net.d_k**0.5,
            f"this is the gradient with respect to {other}": right[other],
        }
    H_bar = R @ theta["W_U"].T
    Z_bar = adjoint_of_Z(net, theta, X, R)
    without = adjoint_of_Z(net.with_beta(beta_attention=net.beta_attention, beta_ffn=0.0), theta, X, R)
    named["Z"] = {
        "the road through the skip is missing": without,
        "the skip has the coefficient 1 in your code; it is beta_F": without + H_bar,
        "only the skip's road is there": Z_bar - without,
        "the sign of the skip's road is reversed": 2 * without - Z_bar,
        "the slope phi'(E) is missing": adjoint_of_Z(_flat(net), theta, X, R),
    }
    return named


def adjoint_of_Z(net, theta, X, R):
    """The derivative of the loss with respect to Z (P, n, d), for the residual R (P, n, c)."""
    long = features_jacobian(net, theta, X).T @ R.reshape(-1, net.c).T.ravel()
    return long.reshape(net.d, -1).T.reshape(X.shape)


def of_blocks(net, theta, X):
    """Mistakes in the Jacobian blocks of W_1 and W_V (set 2, question 2)."""

    def value_block(beta):
        other = net.with_beta(beta_attention=net.beta_attention, beta_ffn=beta)
        return jacobian_blocks(other, theta, X)["W_V"]

    D_Z, S = features_jacobian(net, theta, X), stack_attention(forward(net, theta, X).S)
    one, rows = np.eye(net.d), stack(X)
    return {
        "W_1": {"the slope phi'(E) is missing": jacobian_blocks(_flat(net), theta, X)["W_1"]},
        "W_V": {
            "the road through the feed-forward skip is missing": value_block(0.0),
            "the skip has the coefficient 1 in your code; it is beta_F": value_block(1.0),
            "this is with beta_A in place of beta_F": value_block(net.beta_attention),
            "only the road through the skip is there": value_block(net.beta_ffn) - value_block(0.0),
            "the slope phi'(E) is missing": jacobian_blocks(_flat(net), theta, X)["W_V"],
            "attention is missing: the left factor of W_V is S X": D_Z @ np.kron(one, rows),
            "S is transposed in your product": D_Z @ np.kron(one, S.T @ rows),
            "the factors of the last Kronecker product are exchanged": D_Z @ np.kron(S @ rows, one),
        },
    }


def _flat(net):
    """The network with slopes 1 in place of the activation's."""
    return replace(net, activation=replace(net.activation, derivative=np.ones_like))


def _slope_at_activation(phi):
    return replace(phi, derivative=lambda E: phi.derivative(phi.value(E)))


def _pull(net, theta, at, R, **changed):
    """The backward pass through a forward pass in which some matrices are others."""
    return pullback(net, theta, type(at)((replace(at.layers[0], **changed),), at.F), R)
