"""Make recorded runs: ``python -m residual_gd.experiments.run [NAME ...]``; a killed run goes on where it was."""

import argparse
import contextlib
import sys
from pathlib import Path

import joblib

from . import sentiment_records, weather_records
from .records import CHECKOUT, INSTALLED, RESULTS, command_line, run

# name -> function of the name
EXPERIMENTS = dict.fromkeys(weather_records.NAMES, weather_records.experiment)
EXPERIMENTS |= dict.fromkeys(sentiment_records.NAMES, sentiment_records.experiment)
# An installed library keeps its records as they came; new ones go to the folder where one works.
FOLDER = Path("results") if RESULTS == INSTALLED else CHECKOUT

WAIT = 10  # seconds for a dask scheduler to answer


def main(arguments=None) -> int:
    """Run the experiments that ``arguments`` name, all whose record is missing if none is named."""
    parser = argparse.ArgumentParser(prog="python -m residual_gd.experiments.run", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the records (default: results/)")
    parser.add_argument("--jobs", type=int, default=1, help="pieces of an experiment at the same time")
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a dask.distributed cluster that does the work")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="for the sentiment runs")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"no such experiment: {', '.join(unknown)} (there are {', '.join(EXPERIMENTS)})")
    names = options.names or [name for name in EXPERIMENTS if not (options.folder / f"{name}.json").is_file()]
    command = command_line() if arguments is None else ""
    with _backend(options.dask):
        for name in names:
            print(f"== {name}", flush=True)
            where = {"device": options.device} if name in sentiment_records.NAMES else {}
            path = run(EXPERIMENTS[name](name, **where), folder=options.folder, jobs=options.jobs, command=command)
            print(f"   {path} ({path.stat().st_size / 1000:.0f} kB)", flush=True)
    return 0


@contextlib.contextmanager
def _backend(address):
    """joblib's own backend for a dask cluster, where one is named."""
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError:
        sys.exit("--dask needs dask.distributed: pip install distributed")
    try:
        client = Client(address, timeout=WAIT)
    except (OSError, ValueError) as error:  # nobody answers; not an address
        sys.exit(f"--dask: expected the address of a running scheduler, like tcp://HOST:8786, got {address} ({error})")
    with client, joblib.parallel_config(backend="dask", wait_for_workers_timeout=60):
        yield


if __name__ == "__main__":
    sys.exit(main())
