"""The picture that stands in for an explorer: its first setting, drawn from what the explorer stores."""

import numpy as np

from ..figures.style import style, subplots

# The same as in explorer.css.
COLOURS = ("#0072B2", "#C24E00", "#007D5A", "#A8437F", "#56616B")
LINES = {"line": "-", "dashed": "--", "dotted": ":", "points": "none"}


def picture(payload, frame):
    """Draw one stored frame of a payload with curves; return the figure."""
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
        ax.set_title(setting(payload), fontsize=10)
        ax.legend()
    return fig


def triangles(payload, frame, places, cells, corners):
    """Draw one stored frame of a payload with maps over a triangle.

    places: (K, 2) of the values. cells: (M, 3) indices of the small triangles' corners. corners: (3, 2).
    """
    maps, (x, y) = payload["triangle"]["maps"], frame["at"]
    with style():
        fig, axes = subplots(1, len(maps), height=4.0, squeeze=False)
        for ax, drawn, turn in zip(axes[0], maps, frame["turn"], strict=True):
            low, high = drawn["range"]
            means = np.array(drawn["values"])[cells].mean(axis=1)
            options = {"vmin": low, "vmax": high, "edgecolors": "face", "linewidth": 0.4}
            colours = ax.tripcolor(*places.T, triangles=cells, facecolors=means, **options)
            if turn is not None:
                step = 0.13 * np.array([np.cos(np.radians(turn)), np.sin(np.radians(turn))])
                heads = {"arrowstyle": "<|-|>", "color": "white", "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
                ax.annotate("", np.add((x, y), step), np.subtract((x, y), step), arrowprops=heads)
            ax.plot(x, y, "o", color="white", markeredgecolor="black", markersize=7)
            for (left, up), label in zip(corners, payload["triangle"]["corners"], strict=True):
                below = {"va": "top"} if up == 0 else {"va": "bottom"}
                ax.annotate(
                    label, (left, up), (0, -6 if up == 0 else 6), textcoords="offset points", ha="center", **below
                )
            ax.set(aspect="equal", xlim=(-0.15, 1.15), ylim=(-0.15, 1.0))
            ax.set_title(drawn["label"], fontsize=10)
            ax.axis("off")
            fig.colorbar(colours, ax=ax, orientation="horizontal", shrink=0.7)
        fig.suptitle(setting(payload), fontsize=10)
    return fig


def setting(payload):
    """The setting at which the sliders start, as a line of text."""
    return ", ".join(f"{c['label']} {c['text'][c['start']]}" for c in payload["controls"])
