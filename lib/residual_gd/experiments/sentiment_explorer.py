"""Chapter 8's explorer: token similarity by layer, from the recorded runs."""

from ..explorer import Explorer
from ..explorer.layers import similarity_by_layer
from ..validation import one_of
from .records import RESULTS
from .sentiment_records import PLANS, SIX, recorded
from .training import DEPTHS, VARIANTS

NAMES = tuple(name for name, plan in PLANS.items() if plan.runs == SIX)
NETWORKS = {f"{variant} residual connections": variant for variant in VARIANTS}


def sentiment_explorer(name="sentiment-sst2", folder=RESULTS) -> Explorer:
    """Explorer of a record with networks of 2, 6 and 10 layers, with and without residuals, before and after training.

    name: one of ``NAMES``. ValueError for another; errors of ``records.load`` where the record is missing or damaged.
    """
    one_of(name, NAMES, "name")

    def runs(layers, network):
        return [curves["inside"] for curves in recorded(name, f"L{layers}-{NETWORKS[network]}", folder)]

    return similarity_by_layer(runs, depths=DEPTHS, networks=tuple(NETWORKS))
