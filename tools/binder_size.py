"""Size of the packages that Binder installs for the book: `python tools/binder_size.py`.

The names in `.binder/requirements.txt` and all that they need, each with the size of its files as its wheel lists them
(RECORD), read from this environment. Binder's own base (JupyterLab, notebook, their needs) comes on top; what is in
the base already is counted here too.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

FILE = Path(__file__).resolve().parent.parent / ".binder" / "requirements.txt"


def named(file: Path = FILE) -> list[str]:
    """Packages that the file names."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Requirement(line).name for line in lines if line and not line.startswith(("#", "-"))]


def sizes(names: list[str]) -> dict[str, int]:
    """Bytes of each package and of all that they need. PackageNotFoundError if one is not installed."""
    found: dict[str, int] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        distribution = metadata.distribution(name)
        found[name] = sum(file.size or 0 for file in distribution.files or [])
        for requirement in map(Requirement, distribution.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def main() -> int:
    found = sizes(named())
    for name, size in sorted(found.items(), key=lambda item: -item[1])[:10]:
        print(f"{size / 1e6:8.1f} MB  {name}")
    print(f"{sum(found.values()) / 1e6:8.1f} MB  in {len(found)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
