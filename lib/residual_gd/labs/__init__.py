"""Labs: panels on which a reader builds a network, certifies it and runs gradient descent on settings of their own.

``rate_lab()`` belongs to chapter 5, ``skip_lab()`` to chapter 6. A panel needs a running notebook and ipywidgets; in a
build of the book ``show`` leaves what the panel would say about its first settings.
"""

from .lab import Lab, rate_lab, skip_lab
from .trial import Settings, Trial, run

__all__ = ["Lab", "Settings", "Trial", "rate_lab", "run", "skip_lab"]
