"""The picture that stands in for an explorer: its first setting, drawn from what the explorer stores."""

import numpy as np

from ..figures.style import style, subplots

# The same as in explorer.css.
COLOURS = ("#0072B2", "#C24E00", "#007D5A", "#A8437F", "#56616B")
LINES = {"line": "-", "dashed": "--", "dotted": ":", "points": "none"}


def picture(payload, frame):
    """Draw one stored frame of a payload; return the figure."""
    with style():
        fig, ax = subplots(height=3.8)
        for k, (curve, values) in enumerate(zip(payload["curves"], frame["y"], strict=True)):
            marker = "o" if curve["mark"] == "points" else None
            y = np.array(values, dtype=float)
            ax.plot(
                payload["x"][: len(y)], y, linestyle=LINES[curve["mark"]], marker=marker, markersize=5,
                color=COLOURS[k], label=curve["label"],
            )  # fmt: skip
        for name, axis in payload["axes"].items():
            scale = "log" if axis["log"] else "linear"
            ax.set(**{f"{name}scale": scale, f"{name}lim": axis["range"], f"{name}label": axis["label"]})
        setting = ", ".join(f"{c['label']} {c['text'][c['start']]}" for c in payload["controls"])
        ax.set_title(setting, fontsize=10)
        ax.legend()
    return fig
