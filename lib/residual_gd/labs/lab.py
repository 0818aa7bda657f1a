"""A lab: which settings its panel offers, and what stands in its place where there is no running notebook."""

from dataclasses import asdict, dataclass

import matplotlib.pyplot as plt

from ..explorer.live import in_a_live_kernel
from . import trial
from .picture import draw
from .trial import ACTIVATIONS, FORMS, WIDEST, Settings


@dataclass(frozen=True)
class Dial:
    """A setting that the panel offers.

    kind: "whole" or "real" (a slider from low to high by steps), "power" (a slider over exponents of 10) or "choice"
    (one of ``choices``). sets: the entries of ``Settings`` that it sets.
    """

    label: str
    sets: tuple[str, ...]
    kind: str
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    choices: tuple[str, ...] = ()


SIZES = (
    Dial("width d", ("d",), "whole", 8, WIDEST, 8),
    Dial("tokens n", ("n",), "whole", 1, 16),
    Dial("samples P", ("P",), "whole", 1, 16),
    Dial("activation", ("activation",), "choice", choices=ACTIVATIONS),
)
RUN = (
    Dial("size of the targets ‖R₀‖", ("size",), "power", -3, 2, 0.1),
    Dial("fraction τ of the step", ("tau",), "real", 0.1, 1.9, 0.1),
    Dial("seed", ("seed",), "whole", 0, 99),
)
BETAS = {"low": 0.0, "high": 2.0, "step": 0.05}


@dataclass(frozen=True)
class Lab:
    """A panel of dials with a button: it builds the network, certifies it, runs it and shows what came out.

    title: of the panel. dials: what it offers. settings: where it starts. compare: also run without the attention skip.
    """

    title: str
    dials: tuple[Dial, ...]
    settings: Settings
    compare: bool = False

    def run(self, progress=None, **changes):
        """The ``Trial`` of the settings at the start with these changes; ValueError as in ``trial.run``."""
        return trial.run(Settings(**asdict(self.settings) | changes), compare=self.compare, progress=progress)

    def panel(self):
        """The panel; needs ipywidgets."""
        from .panel import Panel

        return Panel(self)

    def show(self):
        """Show the panel as the output of a cell.

        Without ipywidgets, and with RESIDUAL_GD_PROGRESS=0 as in builds and tests: the trial of the first settings, as
        a figure and as text.
        """
        if in_a_live_kernel("ipywidgets"):
            from IPython.display import display

            display(self.panel().box)
            return
        first = self.run()
        draw(first)
        plt.show()
        print(first)


def rate_lab() -> Lab:
    """Chapter 5: a certificate and a run of the reader's own."""
    mine = (
        Dial("form of the theorem", ("form",), "choice", choices=FORMS),
        Dial("residual coefficient β", ("beta_attention", "beta_ffn"), "real", **BETAS),
        Dial("scale of the branches", ("branches",), "real", 0.0, 1.0, 0.05),
    )
    return Lab("Certify a start and run it", SIZES + mine + RUN, Settings())


def skip_lab() -> Lab:
    """Chapter 6: the dichotomy; each skip has a dial, and so has the distance from uniform attention."""
    mine = (
        Dial("attention skip β_A", ("beta_attention",), "real", **BETAS),
        Dial("feed-forward skip β_F", ("beta_ffn",), "real", **BETAS),
        Dial("scale of W_Q and W_K", ("attention",), "real", 0.0, 1.0, 0.05),
        Dial("scale of the branches", ("branches",), "real", 0.0, 1.0, 0.05),
    )
    start = Settings(d=64, n=4, P=4, attention=0.0, seed=1)
    return Lab("One start, with and without the attention skip", SIZES + mine + RUN, start, compare=True)
