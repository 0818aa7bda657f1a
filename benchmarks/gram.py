"""Time and peak memory of the kernel matrix J J^T: by blocks (this library) against torch.func, in the same run.

    python benchmarks/gram.py [--size small|large] [--chunk 48]

Every method runs in a process of its own on the same instance and threads; memory is the peak of the resident set
above what the process held before the computation. The peers:
    jacrev    torch.func.jacrev, J dense, then J J^T (left out where J does not fit into --memory gigabytes)
    products  torch.func: vmap over chunks of output directions of jvp(vjp(direction)), so that J is never whole
All results are compared with the first.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

SIZES = {
    "warm-up": {"d": 3, "d_k": 2, "m": 3, "c": 1, "P": 1, "n": 2},
    "small": {"d": 64, "d_k": 16, "m": 64, "c": 4, "P": 4, "n": 8},
    "large": {"d": 512, "d_k": 64, "m": 512, "c": 10, "P": 12, "n": 8},
}


def instance(size):
    """The transformer, its parameters and X of this size, from a fixed seed."""
    from residual_gd.parameters import initialize
    from residual_gd.transformer import Transformer

    sizes = dict(SIZES[size])
    P, n = sizes.pop("P"), sizes.pop("n")
    transformer, rng = Transformer(**sizes), np.random.default_rng(0)
    return transformer, initialize(transformer, rng), rng.standard_normal((P, n, transformer.d))


def blocks(transformer, parameters, X, chunk):
    from residual_gd.gram import gram

    return lambda: gram(transformer, parameters, X)


def _torch_function(transformer, parameters, X):
    """vec F of the stacked output as a function of the parameters, in the library's order."""
    from residual_gd.parameters import as_torch
    from residual_gd.transformer import forward_unchecked, stack

    inputs = as_torch(X)
    return lambda W: stack(forward_unchecked(transformer, W, inputs).F).T.reshape(-1), as_torch(parameters)


def jacrev(transformer, parameters, X, chunk):
    import torch

    f, W = _torch_function(transformer, parameters, X)

    def run():
        blocks = torch.func.jacrev(f, chunk_size=chunk)(W)
        return sum(J.flatten(1) @ J.flatten(1).T for J in blocks.values()).numpy()

    return run


def products(transformer, parameters, X, chunk):
    import torch

    f, W = _torch_function(transformer, parameters, X)

    def run():
        _, pull = torch.func.vjp(f, W)
        columns = torch.func.vmap(lambda r: torch.func.jvp(f, (W,), pull(r))[1], chunk_size=chunk)
        outputs = X.shape[0] * X.shape[1] * transformer.c
        return columns(torch.eye(outputs, dtype=torch.float64)).numpy()

    return run


METHODS = {"blocks": blocks, "jacrev": jacrev, "products": products}


class PeakMemory(threading.Thread):
    """Samples the resident set of this process until stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.start_bytes = self.peak = self.resident()
        self.stop = threading.Event()

    @staticmethod
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def run(self):
        while not self.stop.wait(0.002):
            self.peak = max(self.peak, self.resident())

    def used(self):
        self.stop.set()
        self.join()
        return max(self.peak, self.resident()) - self.start_bytes


def measure(method, size, chunk, result):
    """Run one method here, store its K in the file ``result``, print seconds and bytes as JSON."""
    METHODS[method](*instance("warm-up"), chunk)()  # imports and first calls are not counted
    run = METHODS[method](*instance(size), chunk)
    memory = PeakMemory()
    memory.start()
    start = time.perf_counter()
    K = run()
    seconds = time.perf_counter() - start
    used = memory.used()
    np.save(result, K)
    print(json.dumps({"seconds": seconds, "bytes": used}))


def compare(size, chunk, memory):
    transformer, _, X = instance(size)
    outputs = X.shape[0] * X.shape[1] * transformer.c
    dense = 8e-9 * outputs * transformer.parameter_count
    sizes = ", ".join(f"{k} = {v}" for k, v in SIZES[size].items())
    print(f"\n{size}: {sizes}; N c = {outputs}, D = {transformer.parameter_count:,}, dense J {dense:.3g} GB")
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS:
            # J and one flattened copy of its largest block
            if method == "jacrev" and 1.5 * dense > memory:
                print(f"  {method:9s} left out: J alone takes {dense:.1f} GB")
                continue
            result = Path(folder) / f"{method}.npy"
            command = [sys.executable, __file__, "--method", method, "--size", size, "--chunk", str(chunk)]
            done = subprocess.run([*command, "--result", str(result)], check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            K = np.load(result)
            if first is None:
                first = found, K
            apart = np.linalg.norm(K - first[1]) / np.linalg.norm(first[1])
            time_ratio, memory_ratio = (found[key] / first[0][key] for key in ("seconds", "bytes"))
            print(
                f"  {method:9s} {found['seconds']:8.3f} s  {found['bytes'] / 1e6:8.0f} MB  time x {time_ratio:.1f}, "
                f"memory x {memory_ratio:.1f}, relative difference {apart:.0e}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--chunk", type=int, default=48, help="output directions at a time in the peers")
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes that a dense J may take")
    parser.add_argument("--method", choices=METHODS, help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.method:
        measure(given.method, given.size, given.chunk, given.result)
        return
    for size in [given.size] if given.size else ("small", "large"):
        compare(size, given.chunk, given.memory)


if __name__ == "__main__":
    main()
