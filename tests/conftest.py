"""Settings of all tests: no progress bars, figures without a window, no use of a reader's own data folder."""

import os

os.environ["RESIDUAL_GD_PROGRESS"] = "0"
os.environ["MPLBACKEND"] = "Agg"
os.environ.pop("RESIDUAL_GD_DATA", None)
