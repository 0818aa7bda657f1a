"""GPT-2 with coefficients on its two skips (chapter 8): Z = beta_A T + Attn(LN T), T' = beta_F Z + FFN(LN Z).

Pre-LN blocks, causal attention, GELU in GPT-2's tanh form, learned positions, a linear classifier on the last token.
With both coefficients 1 this is the published architecture, and parameters carry its names. Sentences of a batch are
padded on the right: causal attention keeps the padding out of every token that counts.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..validation import finite_float, positive_float, positive_int, require

EPS = 1e-5  # of GPT-2's LayerNorm


class Affine(nn.Module):
    """x -> x W + b with W (inputs, outputs), GPT-2's orientation."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Causal self-attention with several heads and an output projection: (B, n, d) -> (B, n, d)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Affine(width, 3 * width)
        self.c_proj = Affine(width, width)

    def forward(self, x):
        B, n, d = x.shape
        Q, K, V = (part.view(B, n, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(d, dim=-1))
        mixed = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(B, n, d))


class FeedForward(nn.Module):
    """Two affine maps of inner width 4 d with the tanh form of GELU between: (B, n, d) -> (B, n, d)."""

    def __init__(self, width):
        super().__init__()
        self.c_fc = Affine(width, 4 * width)
        self.c_proj = Affine(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """One layer: T (B, n, d) -> Z and the next T, both (B, n, d)."""

    def __init__(self, width, heads, beta_attention, beta_ffn, layer_norm):
        super().__init__()
        self.beta_attention, self.beta_ffn = beta_attention, beta_ffn
        self.ln_1, self.ln_2 = _norm(width, layer_norm), _norm(width, layer_norm)
        self.attn, self.mlp = Attention(width, heads), FeedForward(width)

    def forward(self, T):
        Z = self.beta_attention * T + self.attn(self.ln_1(T))
        return Z, self.beta_ffn * Z + self.mlp(self.ln_2(Z))


class GPT(nn.Module):
    """The classifier: tokens (B, n) and their numbers (B,) -> scores (B, classes).

    vocabulary, layers, width, heads, context, classes: sizes; the width is a multiple of the heads, context is the
    largest number of tokens. beta_attention, beta_ffn: coefficients of the two skips, at least 0. layer_norm: False
    leaves every LayerNorm out. rng: seeded Generator that draws the start; init_std: standard deviation of all
    matrices at the start. shrink: GPT-2 divides that of the matrices that write into the skips by sqrt(2 L), since 2 L
    terms add up there; False does not (without skips nothing adds up).

    Raises ValueError for bad sizes, coefficients or tokens.
    """

    def __init__(
        self,
        *,
        vocabulary,
        layers,
        rng,
        width=128,
        heads=4,
        context=64,
        classes=2,
        beta_attention=1.0,
        beta_ffn=1.0,
        layer_norm=True,
        init_std=0.02,
        shrink=True,
    ):
        super().__init__()
        self.vocabulary, self.layers = positive_int(vocabulary, "vocabulary"), positive_int(layers, "layers")
        self.width, self.heads = positive_int(width, "width"), positive_int(heads, "heads")
        require(width % heads == 0, "width", f"a multiple of the {heads} heads", width)
        self.context, self.classes = positive_int(context, "context"), positive_int(classes, "classes")
        self.beta_attention = finite_float(beta_attention, "beta_attention", low=0.0)
        self.beta_ffn = finite_float(beta_ffn, "beta_ffn", low=0.0)
        require(isinstance(layer_norm, bool), "layer_norm", "True or False", repr(layer_norm))
        self.layer_norm = layer_norm
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        blocks = (Block(width, heads, self.beta_attention, self.beta_ffn, layer_norm) for _ in range(layers))
        self.h = nn.ModuleList(blocks)
        self.ln_f = _norm(width, layer_norm)
        self.score = nn.Linear(width, classes, bias=False)
        self._draw(rng, positive_float(init_std, "init_std"), shrink)

    @torch.no_grad()
    def _draw(self, rng, init_std, shrink):
        """N(0, init_std^2) for every matrix, in the order of the parameters; biases 0, LayerNorm the identity."""
        require(isinstance(rng, np.random.Generator), "rng", "a seeded numpy Generator", type(rng).__name__)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                shrunk = shrink and name.endswith("c_proj.weight")
                std = init_std / math.sqrt(2 * self.layers) if shrunk else init_std
                parameter.copy_(torch.from_numpy(std * rng.standard_normal(tuple(parameter.shape), dtype=np.float32)))

    def states(self, tokens):
        """The states of the tokens (B, n): T_0 (B, n, d) and a list of the pairs Z_l, T_l, layer by layer."""
        room = tokens.ndim == 2 and 1 <= tokens.shape[1] <= self.context
        require(room, "tokens", f"(B, n) with n from 1 to {self.context}", tuple(tokens.shape))
        T_0 = T = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        layers = []
        for block in self.h:
            Z, T = block(T)
            layers.append((Z, T))
        return T_0, layers

    def forward(self, tokens, lengths):
        T = self.states(tokens)[1][-1][1]
        last = T[torch.arange(len(T), device=T.device), lengths - 1]
        return self.score(self.ln_f(last))


def _norm(width, wanted):
    return nn.LayerNorm(width, eps=EPS) if wanted else nn.Identity()
