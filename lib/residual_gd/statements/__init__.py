"""The statements of the book, one file a chapter; ``check(id)`` and ``breaks(id)`` run them."""

from . import (  # noqa: F401  (they register)
    beyond,
    lipschitz,
    local_convexity,
    overparameterization,
    pl_on_ball,
    rate_corollaries,
    rate_master,
    rate_soundness,
    rate_theorem,
    residual_collapse,
    residual_dichotomy,
    residual_rank,
    vectorization,
)
from .base import LEDGER, Comparison, Control, Draw, Statement, breaks, check, run_control, verify

__all__ = ["LEDGER", "Comparison", "Control", "Draw", "Statement", "breaks", "check", "run_control", "verify"]
