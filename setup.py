"""What pyproject.toml cannot say: the wheel carries the recorded runs of `results/`, as data of the library."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py

RECORDS = Path(__file__).resolve().parent / "results"


class WithRecords(build_py):
    """Copy `results/*.json` to `residual_gd/results/` of the wheel; an editable installation reads them in place."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "residual_gd" / "results"
        target.mkdir(parents=True, exist_ok=True)
        for record in sorted(RECORDS.glob("*.json")):
            copy2(record, target)


setup(cmdclass={"build_py": WithRecords})
