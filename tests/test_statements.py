"""Every statement of the ledger: no counterexample, sharp bounds reached, and a negative control that fails."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from residual_gd.statements import LEDGER, Draw, run_control, verify
from residual_gd.statements.base import comparisons

# 50 instances, the same every time; `make nightly` draws 1,000 new ones.
EXAMPLES = int(os.environ.get("RESIDUAL_GD_EXAMPLES", "50"))
chosen = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class HypothesisDraw(Draw):
    """Sizes, scales and choices come from Hypothesis, which shrinks them; matrices from a seed that it draws."""

    def __init__(self, data):
        super().__init__(np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed")))
        self.data = data

    def integer(self, low, high):
        return self.data.draw(st.integers(low, high))

    def real(self, low, high):
        return self.data.draw(st.floats(low, high))


@pytest.mark.parametrize("id", LEDGER)
def test_no_counterexample(id):
    @chosen
    @given(st.data())
    def holds(data):
        for comparison in comparisons(LEDGER[id].instance(HypothesisDraw(data))):
            assert comparison.holds, comparison

    holds()


@pytest.mark.parametrize("id", LEDGER)
def test_check_holds(id):
    verdict = verify(id)
    assert verdict.holds, str(verdict)


@pytest.mark.parametrize("id", LEDGER)
def test_control_fails(id):
    assert LEDGER[id].broken is not None, f"{id} has no negative control"
    for seed in range(3):
        assert run_control(id, seed=seed).fails, run_control(id, seed=seed)


@pytest.mark.parametrize("id", [id for id, statement in LEDGER.items() if statement.sharp])
def test_sharp_statements_have_an_ascent(id):
    assert LEDGER[id].worst is not None
