"""The kernel (Gram) matrix K = J J^T from the block structure; J is never formed (chapter 2).

Every block W enters the network in one product T W, so J_W^T r = T^T U_r with U_r the adjoint of that product, and

    <J_W^T r, J_W^T r'> = <T^T U_r, T^T U_r'> = tr(U_r^T (T T^T) U_r').

No array has the size of a block. Moreover, samples meet only in the parameters: the adjoints of an output of sample p
vanish in all other samples, so n c backward passes serve for all N c outputs.

Order: row and column j N + p n + i of K belong to output j of token i of sample p, as in the column-major vec of the
stacked F (N, c).
"""

from collections.abc import Iterable

from array_api_compat import array_namespace

from .jacobian import require_one_run
from .samples import stack, transpose
from .transformer import adjoints, check_inputs, forward_unchecked
from .validation import one_of, positive_int, require

CHUNK_ENTRIES = 2**23  # default bound on the entries of one array of adjoints, 64 MB in float64


def gram(transformer, parameters, X, blocks=None, *, chunk=None):
    """K = J J^T, or the sum of J_b J_b^T over the named ``blocks``: (Nc, Nc), in the order of the module's docstring.

    X: (P, n, d), one run. chunk: how many of the n c outputs of a sample are pulled back at once (default: as many as
    keep one array of adjoints at 64 MB); a smaller chunk takes less memory and more time.

    Raises ValueError for bad input, an axis of runs or an unknown block. Source: prop-jacobian-blocks.
    """
    X, blocks = _check(transformer, parameters, X, blocks)
    total = _zeros(transformer, X)
    _accumulate(transformer, parameters, X, dict.fromkeys(blocks, total), chunk)
    return _in_order_of_vec(total, transformer.c)


def block_grams(transformer, parameters, X, blocks=None, *, chunk=None):
    """J_b J_b^T for every block, or for the named ones: a dict of (Nc, Nc) matrices. Arguments as in ``gram``."""
    X, blocks = _check(transformer, parameters, X, blocks)
    grams = {block: _zeros(transformer, X) for block in blocks}
    _accumulate(transformer, parameters, X, grams, chunk)
    return {block: _in_order_of_vec(K, transformer.c) for block, K in grams.items()}


def _check(transformer, parameters, X, blocks):
    X, _ = check_inputs(transformer, parameters, X)
    require_one_run(transformer, parameters, X)
    if isinstance(blocks, str):
        blocks = (blocks,)
    require(blocks is None or isinstance(blocks, Iterable), "blocks", "names of blocks", repr(blocks))
    chosen = transformer.blocks if blocks is None else tuple(blocks)
    return X, tuple(one_of(block, transformer.blocks, "blocks") for block in chosen)


def _zeros(transformer, X):
    """A zero kernel with axes (sample, output of the sample, sample, output of the sample)."""
    P, n, _ = X.shape
    xp = array_namespace(X)
    return xp.zeros((P, n * transformer.c, P, n * transformer.c), dtype=X.dtype, device=X.device)


def _in_order_of_vec(K, c):
    """(P, n c, P, n c) with outputs ordered (token, column) -> (N c, N c) in the order of vec of the stacked F."""
    P, outputs = K.shape[:2]
    xp = array_namespace(K)
    axes = xp.reshape(K, (P, outputs // c, c, P, outputs // c, c))
    return xp.reshape(xp.permute_dims(axes, (2, 0, 1, 5, 3, 4)), (P * outputs, P * outputs))


def _accumulate(transformer, parameters, X, grams, chunk):
    """Add J_b J_b^T to ``grams[b]``, for every pair of chunks of output directions."""
    values = forward_unchecked(transformer, parameters, X)
    xp = array_namespace(values.F)
    P, n, c = values.F.shape
    outputs = n * c
    if chunk is None:
        chunk = max(1, CHUNK_ENTRIES // (P * n * max(transformer.d, transformer.m, transformer.d_k)))
    chunk = positive_int(chunk, "chunk")
    # one direction stands for the same output of all samples: its adjoints in sample p are those of p's output
    directions = xp.reshape(xp.eye(outputs, dtype=values.F.dtype, device=values.F.device), (outputs, 1, n, c))
    directions = xp.broadcast_to(directions, (outputs, P, n, c))

    def pull(start):
        return adjoints(transformer, parameters, values, directions[start : start + chunk, ...])

    for i in range(0, outputs, chunk):
        for j in range(i, outputs, chunk):
            if i == j:
                pairs = ((block, T, U, U) for block, T, U in pull(i))
            else:
                pairs = ((block, T, U, V) for (block, T, U), (_, _, V) in zip(pull(i), pull(j), strict=True))
            for block, T, U, V in pairs:
                if block in grams:
                    _add_products(grams[block], T, U, V, i, j)


def _add_products(K, T, U, V, i, j):
    """Add tr(U_r^T (T T^T) V_s) to K for the directions r of U (a, P, n, q), from i on, and s of V, from j on."""
    xp = array_namespace(T)
    a, P, n, q = U.shape
    b = V.shape[0]
    tokens = stack(T) @ transpose(stack(T))
    left = xp.reshape(xp.permute_dims(U, (1, 0, 2, 3)), (P, a, n * q))
    for p in range(P):
        weighted = tokens[:, p * n : (p + 1) * n] @ V[:, p, ...]
        right = xp.reshape(xp.permute_dims(xp.reshape(weighted, (b, P, n, q)), (1, 0, 2, 3)), (P, b, n * q))
        products = left @ transpose(right)
        K[:, i : i + a, p, j : j + b] += products
        if i != j:
            K[p, j : j + b, :, i : i + a] += xp.permute_dims(products, (2, 0, 1))
