"""Change the repository's address everywhere it stands: `python tools/address.py https://github.com/NAME/REPOSITORY`.

The address of `_config.yml` is the one that counts. This replaces it there and in every tracked text file that carries
it (README.md, CITATION.cff, the first cell of each chapter, pages of text), together with its short form
`NAME/REPOSITORY` in the links to Binder and Colab. `--check` changes nothing and fails if some file carries another.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import first_cell

ROOT = Path(__file__).resolve().parent.parent
FORM = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+)")
# A link to this book's repository, whatever its owner: the plain address, Binder's and Colab's.
SERVICES = re.compile(r"(?:mybinder\.org/v2/gh|colab\.research\.google\.com/github)/([\w.-]+/[\w.-]+)")
INSTALL = re.compile(r"git\+https://github\.com/([\w.-]+/[\w.-]+)")


def short(url: str) -> str:
    """NAME/REPOSITORY of an address, without a final slash or `.git`."""
    match = FORM.fullmatch(url.rstrip("/").removesuffix(".git"))
    if not match:
        raise ValueError(f"url must look like https://github.com/NAME/REPOSITORY, got {url!r}")
    return f"{match[1]}/{match[2]}"


def files(root: Path = ROOT) -> list[Path]:
    """Tracked text files that may carry the address."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    endings = (".md", ".yml", ".yaml", ".cff", ".ipynb", ".toml", ".bib")
    return [root / name for name in listed.split("\0") if name.endswith(endings) and (root / name).is_file()]


def strangers(text: str, own: str) -> list[str]:
    """Repositories that a text links through Binder, Colab or pip and that are not `own`."""
    return [found for form in (SERVICES, INSTALL) for found in form.findall(text) if found.removesuffix(".git") != own]


def main(arguments: list[str]) -> int:
    own = short(first_cell.repository_url())
    if arguments == ["--check"]:
        wrong = [f"{p.relative_to(ROOT)}: {s}" for p in files() for s in strangers(p.read_text(encoding="utf-8"), own)]
        print("\n".join(wrong) or f"every link is to {own}")
        return 1 if wrong else 0
    if len(arguments) != 1:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        new = short(arguments[0])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for path in files():
        text = path.read_text(encoding="utf-8")
        if own in text:
            path.write_text(text.replace(own, new), encoding="utf-8", newline="\n")
            print(f"changed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
