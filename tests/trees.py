"""Comparing two folders of files byte for byte."""

from pathlib import Path


def differences(first: Path, second: Path) -> list[str]:
    """Names of the files that are in one of the folders only or differ."""
    files = [{str(f.relative_to(root)): f for f in root.rglob("*") if f.is_file()} for root in (first, second)]
    return sorted(
        name
        for name in files[0].keys() | files[1].keys()
        if not (name in files[0] and name in files[1] and files[0][name].read_bytes() == files[1][name].read_bytes())
    )
