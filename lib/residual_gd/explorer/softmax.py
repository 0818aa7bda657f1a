"""Chapter 3: first and second derivative of the softmax over the weights of three tokens."""

import numpy as np

from .explorer import Axis, Control, Explorer, Frame, number

POINTS = 41


def three_weights(jacobian, curvature, constants, *, weights):
    """Explorer of both norms along a line through the simplex: the first weight is fixed, the rest is shared out.

    jacobian: s (3,) -> the matrix diag(s) - s s^T. curvature: s -> largest |D^2 softmax| over unit directions.
    constants: largest weight -> their two bounds (gamma, c_2). weights: the first weight's values, each below 1.
    """

    def frame(first):
        share = np.linspace(0.0, 1.0, POINTS)
        rest = 1.0 - first
        lines = np.stack([np.full(POINTS, first), rest * share, rest * (1.0 - share)], axis=1)
        values, vectors = np.linalg.eigh(np.stack([jacobian(s) for s in lines]))
        bounds = np.array([constants(float(s.max())) for s in lines])
        worst = int(np.argmax(np.round(values[:, -1], 9)))
        direction = vectors[worst, :, -1]
        direction = direction * np.sign(direction[np.argmax(np.round(abs(direction), 9))])
        return Frame(
            {
                "first derivative": values[:, -1],
                "its bound γ": bounds[:, 0],
                "second derivative": np.array([curvature(s) for s in lines]),
                "its bound c₂": bounds[:, 1],
            },
            {
                "largest first derivative": number(values[worst, -1]),
                "at the weights": _vector(lines[worst]),
                "in the direction": _vector(direction),
            },
        )

    return Explorer(
        "How fast three attention weights can move",
        (Control("weight of token 1", tuple(weights), len(weights) // 3),),
        frame,
        x=np.linspace(0.0, 1.0, POINTS),
        x_axis=Axis("share of token 2 in the rest", low=0.0, high=1.0),
        y_axis=Axis("norm", low=0.0, high=0.55),
        marks={"its bound γ": "dashed", "its bound c₂": "dotted"},
        anywhere=True,
    )


def _vector(values):
    return "(" + ", ".join(f"{value + 0.0:.2f}" for value in np.round(values, 9)) + ")"
