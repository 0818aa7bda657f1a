"""The Transformer of the book: sizes, parameter blocks, forward pass, loss and gradient (chapters 1 and 2).

The network is written once, against the array API: NumPy float64 and torch tensors run through the same lines. One
layer with one head is the network of the paper; L layers and n_h heads are the same lines in a loop.

Inputs are ``X`` of shape (P, n, d): P samples of n tokens. A leading axis of runs may stand before the matrices of
the parameters, before X and Y, and in the residual coefficients; all must agree where they are there.
"""

import math
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any

from array_api_compat import is_array_api_obj

from .activations import Activation, activation
from .samples import coefficient, contract, half_square, multiply, softmax, softmax_pullback, transpose
from .validation import finite_array, finite_float, positive_int, require

Array = Any
Parameters = dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Sizes and fixed choices of the network.

    d, d_k, m, c: width, key width, feed-forward width, outputs. ``activation``: a name or an ``Activation``.
    ``beta_attention`` and ``beta_ffn`` are the coefficients of the two skips (>= 0): a number, or a sequence with one
    number a run; ``beta`` sets both. ``layers`` and ``heads`` are 1 in the paper.

    Raises ValueError for a size below 1, a negative beta, an unknown activation, ``beta`` beside one of the two.
    """

    d: int
    d_k: int
    m: int
    c: int
    activation: Activation = "gelu"
    beta: InitVar[Any] = None
    beta_attention: Any = None
    beta_ffn: Any = None
    layers: int = 1
    heads: int = 1

    def __post_init__(self, beta):
        for name in ("d", "d_k", "m", "c", "layers", "heads"):
            object.__setattr__(self, name, positive_int(getattr(self, name), name))
        object.__setattr__(self, "activation", activation(self.activation))
        for name in ("beta_attention", "beta_ffn"):
            given = getattr(self, name)
            if beta is not None:
                require(given is None, name, "nothing beside beta, which sets both", repr(given))
                given = beta
            object.__setattr__(self, name, _coefficient(1.0 if given is None else given, name))
        _ = self.runs  # coefficients with different numbers of runs are refused at once

    def with_beta(self, beta=None, *, beta_attention=None, beta_ffn=None) -> "Transformer":
        """The same network with other residual coefficients; those not named become 1."""
        sizes = {name: getattr(self, name) for name in ("d", "d_k", "m", "c", "activation", "layers", "heads")}
        return Transformer(**sizes, beta=beta, beta_attention=beta_attention, beta_ffn=beta_ffn)

    @property
    def runs(self) -> int | None:
        """Number of runs in the residual coefficients, None if they are plain numbers."""
        lengths = {len(b) for b in (self.beta_attention, self.beta_ffn) if isinstance(b, tuple)}
        require(len(lengths) <= 1, "beta_ffn", "as many runs as beta_attention", f"lengths {sorted(lengths)}")
        return lengths.pop() if lengths else None

    def name(self, block: str, layer: int = 1, head: int = 1) -> str:
        """Name of a block: plain ("W_Q") for one layer and head, else "W_Q.layer.head", "W_1.layer" (from 1)."""
        if block == "W_U" or (self.layers == 1 and self.heads == 1):
            return block
        return f"{block}.{layer}.{head}" if block in ("W_Q", "W_K", "W_V") else f"{block}.{layer}"

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Shape of every block, in the order of the book: per layer Q, K, V of each head, then 1, 2; last U."""
        d, d_k, m, c = self.d, self.d_k, self.m, self.c
        shapes = {}
        for layer in range(1, self.layers + 1):
            for head in range(1, self.heads + 1):
                shapes[self.name("W_Q", layer, head)] = (d, d_k)
                shapes[self.name("W_K", layer, head)] = (d, d_k)
                shapes[self.name("W_V", layer, head)] = (d, d)
            shapes[self.name("W_1", layer)] = (d, m)
            shapes[self.name("W_2", layer)] = (m, d)
        shapes["W_U"] = (d, c)
        return shapes

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the parameter blocks in order."""
        return tuple(self.shapes)

    @property
    def parameter_count(self) -> int:
        """D, the number of parameters."""
        return sum(rows * columns for rows, columns in self.shapes.values())


def _coefficient(beta, name):
    if isinstance(beta, (int, float)):
        return finite_float(beta, name, low=0.0)
    values = finite_array(beta, name)
    if values.ndim == 0:
        return finite_float(float(values), name, low=0.0)
    require(values.ndim == 1 and values.shape[0] > 0, name, "a number or one number a run", f"shape {values.shape}")
    return tuple(finite_float(float(b), name, low=0.0) for b in values)


@dataclass(frozen=True)
class Layer:
    """Every intermediate matrix of one layer, by sample: each has shape (..., P, n, columns).

    T is the layer's input (X in the first layer). queries, keys, values = T W_Q, T W_K, T W_V and the logits G and
    attention matrices S (columns n) are tuples with one entry a head. Z, E, A, H as in the notation table.
    """

    T: Array
    queries: tuple[Array, ...]
    keys: tuple[Array, ...]
    values: tuple[Array, ...]
    G: tuple[Array, ...]
    S: tuple[Array, ...]
    Z: Array
    E: Array
    A: Array
    H: Array


@dataclass(frozen=True)
class Forward:
    """A forward pass: the layers and the output F (..., P, n, c).

    Z, E, A, H are those of the last layer; G and S too where it has one head (ValueError otherwise).
    """

    layers: tuple[Layer, ...]
    F: Array
    Z: Array = field(init=False)
    E: Array = field(init=False)
    A: Array = field(init=False)
    H: Array = field(init=False)

    def __post_init__(self):
        for name in ("Z", "E", "A", "H"):
            object.__setattr__(self, name, getattr(self.layers[-1], name))

    @property
    def G(self):
        return self._one_head("G")

    @property
    def S(self):
        return self._one_head("S")

    def _one_head(self, name):
        per_head = getattr(self.layers[-1], name)
        require(len(per_head) == 1, name, f"one head (else use layers[l].{name}[h])", f"{len(per_head)} heads")
        return per_head[0]


def check_inputs(transformer, parameters, X, Y=None):
    """Validate shapes and finiteness; return (X, Y). Every public function of the theory calls it once."""
    require(isinstance(transformer, Transformer), "transformer", "a Transformer", type(transformer).__name__)
    require(isinstance(parameters, dict), "parameters", "a dict of matrices", type(parameters).__name__)
    missing = [b for b in transformer.blocks if b not in parameters]
    extra = [b for b in parameters if b not in transformer.shapes]
    require(not missing, "parameters", "the blocks " + ", ".join(transformer.blocks), "no " + ", ".join(missing))
    require(not extra, "parameters", "the blocks " + ", ".join(transformer.blocks), "also " + ", ".join(extra))
    for block, shape in transformer.shapes.items():
        require(is_array_api_obj(parameters[block]), block, "an array", type(parameters[block]).__name__)
        finite_array(parameters[block], block, (..., *shape))
    X = finite_array(X, "X", (..., "P", "n", transformer.d))
    require(0 not in X.shape, "X", "at least one sample and one token", f"shape {tuple(X.shape)}")
    if Y is not None:
        Y = finite_array(Y, "Y", (..., X.shape[-3], X.shape[-2], transformer.c))
    _common_runs(transformer, parameters, X, Y)
    return X, Y


def _common_runs(transformer, parameters, X, Y):
    leading = {block: tuple(parameters[block].shape[:-2]) for block in transformer.blocks}
    leading["X"] = tuple(X.shape[:-3])
    if Y is not None:
        leading["Y"] = tuple(Y.shape[:-3])
    if transformer.runs is not None:
        leading["beta"] = (transformer.runs,)
    found = {name: axes for name, axes in leading.items() if axes}
    for name, axes in found.items():
        first = next(iter(found))
        require(len(axes) == 1, name, "at most one leading axis (the runs)", f"leading axes {axes}")
        require(axes == found[first], name, f"{found[first][0]} runs as in {first}", f"{axes[0]} runs")


def forward(transformer, parameters, X) -> Forward:
    """The forward pass with every intermediate matrix.

    X: (P, n, d), or (runs, P, n, d). Raises ValueError for wrong shapes, missing blocks, NaN or infinite values.
    """
    X, _ = check_inputs(transformer, parameters, X)
    return forward_unchecked(transformer, parameters, X)


def forward_unchecked(transformer, parameters, X) -> Forward:
    """``forward`` without validation, for inner loops and automatic differentiation."""
    layers, T = [], X
    for layer in range(1, transformer.layers + 1):
        layers.append(_forward_layer(transformer, parameters, layer, T))
        T = layers[-1].H
    return Forward(tuple(layers), multiply(T, parameters["W_U"]))


def _forward_layer(transformer, parameters, layer, T):
    def W(block, head=1):
        return parameters[transformer.name(block, layer, head)]

    queries, keys, values, G, S = [], [], [], [], []
    Z = coefficient(transformer.beta_attention, T) * T
    for head in range(1, transformer.heads + 1):
        queries.append(multiply(T, W("W_Q", head)))
        keys.append(multiply(T, W("W_K", head)))
        values.append(multiply(T, W("W_V", head)))
        G.append(queries[-1] @ transpose(keys[-1]) / math.sqrt(transformer.d_k))
        S.append(softmax(G[-1]))
        Z = Z + S[-1] @ values[-1]
    E = multiply(Z, W("W_1"))
    A = transformer.activation(E)
    H = multiply(A, W("W_2")) + coefficient(transformer.beta_ffn, Z) * Z
    return Layer(T, tuple(queries), tuple(keys), tuple(values), tuple(G), tuple(S), Z, E, A, H)


def loss(transformer, parameters, X, Y):
    """Phi = 1/2 ||F - Y||_F^2, a number for each run. X: (..., P, n, d), Y: (..., P, n, c)."""
    X, Y = check_inputs(transformer, parameters, X, Y)
    return half_square(forward_unchecked(transformer, parameters, X).F - Y)


def gradient(transformer, parameters, X, Y) -> Parameters:
    """The gradient of Phi in every block, derived by hand (prop-gradient)."""
    X, Y = check_inputs(transformer, parameters, X, Y)
    values = forward_unchecked(transformer, parameters, X)
    return pullback(transformer, parameters, values, values.F - Y)


def pullback(transformer, parameters, values, F_bar) -> Parameters:
    """J^T vec(F_bar) by blocks, where ``values`` is the forward pass; with F_bar = R = F - Y it is grad Phi."""
    gradients = {block: contract(T, bar) for block, T, bar in adjoints(transformer, parameters, values, F_bar)}
    return {block: gradients[block] for block in transformer.blocks}


def adjoints(transformer, parameters, values, F_bar):
    """The backward pass: yield (block, T, bar) for every block, from W_U down to the first layer.

    Every block W enters the network in one product T W. T is its left factor (P, n, rows of W) and ``bar`` the adjoint
    of the product (..., P, n, columns of W), so that J_W^T vec(F_bar) = contract(T, bar). F_bar may have a leading
    axis of its own (output directions) where the parameters have no runs; ``bar`` then has it too.
    """
    yield "W_U", values.H, F_bar
    H_bar = multiply(F_bar, transpose(parameters["W_U"]))
    for layer in range(transformer.layers, 0, -1):
        H_bar = yield from _layer_adjoints(transformer, parameters, layer, values.layers[layer - 1], H_bar)


def _layer_adjoints(transformer, parameters, layer, at, H_bar):
    """``adjoints`` of one layer's blocks; returns the adjoint of the layer's input (None for the input X)."""

    def name(block, head=1):
        return transformer.name(block, layer, head)

    def pull(bar, block, head=1):
        return multiply(bar, transpose(parameters[name(block, head)]))

    yield name("W_2"), at.A, H_bar
    E_bar = pull(H_bar, "W_2") * transformer.activation.derivative(at.E)
    yield name("W_1"), at.Z, E_bar
    Z_bar = pull(E_bar, "W_1") + coefficient(transformer.beta_ffn, H_bar) * H_bar
    T_bar = None if layer == 1 else coefficient(transformer.beta_attention, Z_bar) * Z_bar
    for h in range(transformer.heads):
        values_bar = transpose(at.S[h]) @ Z_bar
        G_bar = softmax_pullback(at.S[h], Z_bar @ transpose(at.values[h])) / math.sqrt(transformer.d_k)
        queries_bar = G_bar @ at.keys[h]
        keys_bar = transpose(G_bar) @ at.queries[h]
        for block, bar in (("W_V", values_bar), ("W_Q", queries_bar), ("W_K", keys_bar)):
            yield name(block, h + 1), at.T, bar
            if layer > 1:
                T_bar = T_bar + pull(bar, block, h + 1)
    return T_bar
