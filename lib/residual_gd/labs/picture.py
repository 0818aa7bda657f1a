"""The picture of a trial: the loss of gradient descent under its envelope."""

import base64
import io
from html import escape

import matplotlib.pyplot as plt
import numpy as np

from ..figures.style import FAILS, FAINT, MEASURED, PROVED, style, subplots


def draw(trial):
    """Draw the losses of a ``Trial`` over the iterations, logarithmic; return the figure."""
    k = trial.iterations
    with style():
        fig, ax = subplots()
        if trial.envelope is not None:
            ax.semilogy(k, trial.envelope, "--", color=PROVED, label="proved envelope")
        label = "gradient descent" + ("" if trial.certified else ", not certified")
        ax.semilogy(k, _finite(trial.loss), color=MEASURED if trial.certified else FAILS, label=label)
        if trial.without is not None:
            ax.semilogy(k, _finite(trial.without), "-.", color="#444444", label="without the attention skip")
            floor = "floor of uniform attention without its skip"
            ax.axhline(trial.uniform_floor, color=FAINT, linestyle=":", label=floor)
        ax.set(xlabel="iteration $k$", ylabel=r"loss $\Phi_k$")
        ax.legend()
    return fig


def as_img(trial) -> str:
    """The picture as an HTML image that holds its bytes, with the verdict as alt text."""
    fig = draw(trial)
    stream = io.BytesIO()
    fig.savefig(stream, format="png")
    plt.close(fig)  # else the notebook would show it a second time
    alt = escape(f"Loss of gradient descent over the iterations, logarithmic. {trial.verdict}", quote=True)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img style="max-width: 100%" alt="{alt}" src="data:image/png;base64,{data}">'


def _finite(losses):
    return np.where(np.isfinite(losses), losses, np.nan)
