"""The recorded runs of chapter 7 and how to make them: sweeps over beta on the mast's and the Jena records."""

from dataclasses import replace
from functools import partial

from ..data import MAST_EXTRACT
from ..validation import one_of, positive_int, require
from .records import RESULTS, Experiment, load
from .settings import setting
from .sweeps import BETAS, Sweep, step_grid
from .weather import jena_path, load_embedded, load_jena

SWEEPS = {  # what each record holds: the step rule and the scale of W_Q and W_K
    "common": {"step": "common", "sigma_Q": 1.0},
    "fair": {"step": "fair", "sigma_Q": 1.0},
    "uniform": {"step": "common", "sigma_Q": 0.0},
}
JENA_ROWS = 4000  # read of the file of 2009-2016; the windows are cut from the first 16 days (W1) or 4 (W2) of 2009
JENA_COLUMNS = ("p", "T", "Tpot", "Tdew", "rh", "VPmax", "VPact", "VPdef", "sh", "H2OC", "rho")  # all but the wind
NAMES = {  # source, setting, steps, stride of the trace
    "weather-mast-W2": ("mast", "W2", 500, 10),
    "weather-jena-W1": ("jena", "W1", 1000, 20),
    "weather-jena-W2": ("jena", "W2", 1000, 20),
}


def experiment(name, *, steps=None, trace_every=None) -> Experiment:
    """The experiment whose record is ``name``. steps, trace_every: other ones than the record has, for tests.

    ValueError for an unknown name or a number that is no integer >= 1; for Jena's the errors of ``load_jena``.
    """
    source, setting_name, whole, stride = NAMES[one_of(name, NAMES, "name")]
    steps = whole if steps is None else positive_int(steps, "steps")
    trace_every = stride if trace_every is None else positive_int(trace_every, "trace_every")
    configuration = {
        "source": source,
        "setting": setting_name,
        "steps": steps,
        "trace_every": trace_every,
        "betas": list(BETAS),
        "seeds": list(range(5)),
        "sweeps": SWEEPS,
        "dtype": "float64",
        "device": "cpu",
    } | ({"rows": JENA_ROWS} if source == "jena" else {})
    path = MAST_EXTRACT if source == "mast" else jena_path()
    cut = partial(_windows, source, setting_name, path)
    options = {"steps": steps, "trace_every": trace_every, "betas": BETAS, "seeds": 5}
    pieces = {sweep: partial(_piece, cut, options | how) for sweep, how in SWEEPS.items()}
    return Experiment(name=name, configuration=configuration, pieces=pieces, data={path.name: path})


def recorded_sweeps(name, folder=RESULTS) -> dict[str, Sweep]:
    """The sweeps of a record by name ("common", "fair", "uniform").

    Errors as in ``records.load``; ValueError for a record with other sweeps, and for one whose curves do not fit.
    """
    curves = load(one_of(name, NAMES, "name"), folder)["curves"]
    require(set(curves) == set(SWEEPS), name, "the sweeps " + ", ".join(SWEEPS), ", ".join(curves))
    return {sweep: Sweep.from_curves(found, f"{name}, {sweep}") for sweep, found in curves.items()}


def _windows(source, setting_name, path):
    if source == "mast":
        return setting(setting_name, load_embedded())
    record = load_jena(path)
    first = replace(record, times=record.times[:JENA_ROWS], values=record.values[:JENA_ROWS])
    return setting(setting_name, first, columns=JENA_COLUMNS)


def _piece(cut, options, checkpoint):
    data = cut()
    every = 5 * options["trace_every"]
    (sweep,) = step_grid(data.X, data.Y, taus=(1.0,), checkpoint=checkpoint, checkpoint_every=every, **options)
    return sweep.curves()
