"""How much less time does one batch of runs take than the same runs one after the other?

    python benchmarks/batch.py

Prints, for two sizes, the seconds of both ways in the same process (median of three, one warm-up) and their ratio.
"""

import os
import statistics
import time

import numpy as np

from residual_gd.descent import descend
from residual_gd.parameters import initialize, stack_runs
from residual_gd.transformer import Transformer

os.environ["RESIDUAL_GD_PROGRESS"] = "0"
BETAS, SEEDS, STEPS = (0.0, 0.25, 0.5, 1.0), 8, 200


def seconds(work, repeats=3):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compare(name, P, n, d, m):
    betas, seeds = np.repeat(BETAS, SEEDS), np.tile(np.arange(SEEDS), len(BETAS))
    transformer = Transformer(d=d, d_k=d // 2, m=m, c=1, beta=betas)
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((P, n, d)), rng.standard_normal((P, n, 1))
    runs = [initialize(transformer, np.random.default_rng(seed), W_U=0.1) for seed in seeds]
    options = {"steps": STEPS, "step": 1e-5, "trace_every": 10}

    def together():
        descend(transformer, stack_runs(runs), X, Y, **options)

    def one_by_one():
        for beta, run in zip(betas, runs, strict=True):
            descend(transformer.with_beta(beta), run, X, Y, **options)

    batch, singles = seconds(together), seconds(one_by_one)
    print(
        f"{name:14s} {len(runs)} runs x {STEPS} steps   one by one {singles:6.2f} s"
        f"   batch {batch:6.2f} s   ratio {singles / batch:4.1f}"
    )


if __name__ == "__main__":
    compare("N = 32, d = 64", P=4, n=8, d=64, m=64)
    compare("N = 128, d = 32", P=16, n=8, d=32, m=64)
