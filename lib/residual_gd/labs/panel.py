"""The panel of a lab, made of ipywidgets."""

from html import escape

import ipywidgets as widgets
import numpy as np

from ..certificate_text import as_html
from .picture import as_img

READY = "Set the dials and press the button."
# What settings may run into; everything else is a fault of the program and is shown as such.
REFUSALS = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


class Panel:
    """Dials, a button, a progress bar, and below them verdict, picture and table of margins.

    dials: label -> widget. button, progress, message, picture, table: widgets. box: all of them, to be displayed.
    trial: the last one, None before the first and after settings that cannot be used.
    """

    def __init__(self, lab):
        self.lab, self.trial = lab, None
        self.dials = {dial.label: _widget(dial, getattr(lab.settings, dial.sets[0])) for dial in lab.dials}
        self.button = widgets.Button(description="Build, certify, run", button_style="primary")
        self.button.on_click(lambda _: self.press())
        self.progress = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="12rem"))
        self.message, self.picture, self.table = widgets.HTML(_status(READY)), widgets.HTML(), widgets.HTML()
        grid = widgets.Layout(flex_flow="row wrap")
        self.box = widgets.VBox(
            [
                widgets.HTML(f"<b>{escape(lab.title)}</b>"),
                widgets.Box(list(self.dials.values()), layout=grid),
                widgets.Box([self.button, self.progress], layout=grid),
                self.message,
                self.picture,
                self.table,
            ]
        )

    @property
    def chosen(self) -> dict:
        """The entries of ``Settings`` as the dials stand."""
        return {entry: self.dials[dial.label].value for dial in self.lab.dials for entry in dial.sets}

    def press(self):
        """What the button does: a trial of the settings, or a message that says what is wrong with them."""
        self.button.disabled, self.progress.bar_style = True, "info"
        self.message.value = _status("Running ...")
        try:
            self.trial = self.lab.run(self._advance, **self.chosen)
        except REFUSALS as error:
            self.trial, self.progress.bar_style = None, "danger"
            self.message.value = _status(f"These settings cannot be used. {error}", "#b00020")
            self.picture.value = self.table.value = ""
        else:
            self.progress.bar_style = "success" if self.trial.certified else "warning"
            self.message.value = _status(self.trial.verdict)
            self.picture.value, self.table.value = as_img(self.trial), as_html(self.trial.certificate)
        finally:
            self._advance(1.0)
            self.button.disabled = False

    def _advance(self, share):
        self.progress.value = share


def _status(text, colour="inherit"):
    return f'<p role="status" style="color: {colour}">{escape(str(text))}</p>'


def _widget(dial, value):
    look = {
        "description": dial.label,
        "style": {"description_width": "10.5rem"},
        "layout": widgets.Layout(width="22rem", max_width="100%"),
    }
    if dial.kind == "choice":
        return widgets.Dropdown(options=dial.choices, value=value, **look)
    kinds = {"whole": widgets.IntSlider, "real": widgets.FloatSlider, "power": widgets.FloatLogSlider}
    span = {"min": dial.low, "max": dial.high, "step": dial.step, "continuous_update": False}
    if dial.kind == "power":
        look["readout_format"] = ".3g"
    elif dial.kind == "whole":
        span |= {"min": int(dial.low), "max": int(dial.high), "step": int(dial.step)}
    return kinds[dial.kind](value=value, **span, **look)
