"""The statements of the book, one file a chapter; ``check(id)`` and ``breaks(id)`` run them."""

from . import beyond, lipschitz, local_convexity, rate_theorem, residual_dichotomy, residual_rank, vectorization  # noqa: F401  (they register)
from .base import LEDGER, Comparison, Control, Draw, Statement, breaks, check, run_control, verify

__all__ = ["LEDGER", "Comparison", "Control", "Draw", "Statement", "breaks", "check", "run_control", "verify"]
