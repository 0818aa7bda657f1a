"""Chapters 6 and 7: the singular values of Z, tokens that merge with depth."""

import numpy as np

from .explorer import Axis, Explorer, Frame
from .grid import Control, number


def attention_output(tokens, attention, singular_values, *, strengths, betas, lengths):
    """Explorer of the singular values of Z = S X W_V + beta X, from uniform to identity attention.

    tokens: n -> X (n, d) with n <= d. attention: (X, strength) -> (S, S X W_V). singular_values: A -> its singular
    values, descending.
    """

    def frame(strength, beta, n):
        X = tokens(n)
        S, output = attention(X, strength)
        of_Z = singular_values(output + beta * X)
        return Frame(
            {"of Z": of_Z, "of attention alone, S X W_V": singular_values(output), "of X": singular_values(X)},
            {
                "smallest of Z": number(of_Z[-1]),
                "condition number of Z": number(of_Z[0] / of_Z[-1]),
                "distance of S from uniform": number(np.linalg.norm(S - 1.0 / n)),
                "from the identity": number(np.linalg.norm(S - np.eye(n))),
            },
        )

    longest = max(lengths)
    return Explorer(
        "Singular values of Z = S X W_V + β X",
        (
            Control("strength of the logits", tuple(strengths), len(strengths) // 3),
            Control("residual coefficient β", tuple(betas), len(betas) - 1),
            Control("tokens n", tuple(lengths), len(lengths) // 2),
        ),
        frame,
        x=np.arange(1, longest + 1),
        x_axis=Axis("index j", low=0.5, high=longest + 0.5),
        y_axis=Axis("singular value σⱼ", log=True),
        marks={"of Z": "points", "of attention alone, S X W_V": "points", "of X": "dotted"},
        anywhere=True,
    )


def before_and_after(spectra, *, settings, betas, rounding=1e-10):
    """Explorer of the singular values of the stacked Z at the start and after training, over beta.

    spectra: (setting, beta) -> the singular values of X, of Z at the start, and of Z after training, each (q,),
    descending. What lies below ``rounding`` times the largest of its curve is left out, and does not count as rank.
    """
    labels = ("of X", "of Z at the start", "of Z after training")
    found = {(name, beta): [np.asarray(v) for v in spectra(name, beta)] for name in settings for beta in betas}

    def frame(name, beta):
        kept = [np.where(values > rounding * values[0], values, np.nan) for values in found[name, beta]]
        readings = {f"rank {label}": str(int(np.sum(values > 0))) for label, values in zip(labels, kept, strict=True)}
        for label, values in zip(labels[1:], kept[1:], strict=True):
            readings[f"smallest {label}"] = number(float(np.nanmin(values)))
        return Frame(dict(zip(labels, kept, strict=True)), readings)

    longest = max(len(values) for curves in found.values() for values in curves)
    return Explorer(
        "Weather: singular values of the stacked Z, before and after training",
        (Control("setting", tuple(settings), 0), Control("residual coefficient β", tuple(betas), 0)),
        frame,
        x=np.arange(1, longest + 1),
        x_axis=Axis("index j", low=0.5, high=longest + 0.5),
        y_axis=Axis("singular value σⱼ", log=True),
        marks={"of X": "dotted", "of Z after training": "points"},
    )


def merging_tokens(spreads, *, betas, strengths, layers):
    """Explorer of how the tokens of a sample merge: ||C T_l||_F / ||C T_0||_F over the layers.

    spreads: (strength of the weights, beta) -> spread of the tokens (layers + 1,), with the attention skip's beta.
    """

    def frame(strength, beta):
        with_skip, without = spreads(strength, beta), spreads(strength, 0.0)
        shares = without / without[0]
        # What is below is rounding.
        return Frame(
            {"with the skip": with_skip / with_skip[0], "without": np.where(shares > 1e-12, shares, np.nan)},
            {"left after the last layer": number(with_skip[-1] / with_skip[0])},
        )

    return Explorer(
        "How the tokens merge, layer by layer",
        (
            Control("scale of the weights", tuple(strengths), len(strengths) // 2),
            Control("coefficient β of the skip", tuple(betas), len(betas) - 1),
        ),
        frame,
        x=np.arange(layers + 1),
        x_axis=Axis("layer ℓ"),
        y_axis=Axis("spread ‖C T‖ / ‖C X‖", log=True),
        marks={"without": "points"},
        anywhere=True,
    )
