"""Showing an explorer in a notebook: its picture, its HTML, and in a live kernel the widget."""

import os
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent


def show(explorer):
    """Display ``explorer`` as the outputs of a cell; see ``Explorer.show``."""
    from IPython.display import display

    explorer.picture()
    plt.show()
    output = {"text/html": explorer.html(), "text/plain": repr(explorer)}
    if in_a_live_kernel("anywidget"):
        # A front end that knows widgets shows this one instead of the HTML.
        output |= {kind: data for kind, data in _view(widget(explorer)).items() if "widget-view" in kind}
    display(output, raw=True)


def in_a_live_kernel(package) -> bool:
    """Whether widgets may be shown: ``package`` is there, and RESIDUAL_GD_PROGRESS is not 0, as in builds and tests."""
    return os.environ.get("RESIDUAL_GD_PROGRESS", "1") != "0" and find_spec(package) is not None


def widget(explorer):
    """The explorer as an anywidget; where ``explorer.anywhere``, it answers settings between those of the grid."""
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        _esm = (FOLDER / "explorer.js").read_text(encoding="utf-8")
        _css = (FOLDER / "explorer.css").read_text(encoding="utf-8")
        payload = traitlets.Dict().tag(sync=True)
        anywhere = traitlets.Bool(False).tag(sync=True)
        wanted = traitlets.Dict().tag(sync=True)
        answer = traitlets.Dict().tag(sync=True)

        @traitlets.observe("wanted")
        def _compute(self, change):
            asked = change["new"]
            try:
                answer = {"frame": explorer.frame_at(*asked["values"])}
            except ValueError as error:
                answer = {"error": str(error)}
            self.answer = {"number": asked["number"]} | answer

    return ExplorerWidget(payload=explorer.payload, anywhere=explorer.anywhere)


def _view(shown):
    """The widget's mime bundle (newer versions return it with its metadata)."""
    bundle = shown._repr_mimebundle_()
    return bundle[0] if isinstance(bundle, tuple) else bundle
