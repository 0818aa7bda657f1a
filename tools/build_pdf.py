"""Make the book's PDF from the executed notebooks: `python tools/build_pdf.py`.

Nothing is executed: the PDF shows what the last `make book` computed. A reference without a target, a letter that the
fonts lack and a line that sticks out into the margin are errors. If the pages are there, their download menu gets it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import executed
from build_book import COMPLETE, ROOT, BuildError, check_toc, check_version, render
from notebooks import NotebookError

NAME = "residual-gd.pdf"
LATEX = ("latexmk", "-xelatex", "-interaction=nonstopmode", "-halt-on-error", "-quiet", "book.tex")
TOO_WIDE = 15.0  # points: a word at the end of a line may stick out less
DOWNLOADS = re.compile(r'<div class="dropdown dropdown-download-buttons">.*?<ul class="dropdown-menu">', re.DOTALL)
ITEM = """
<li><a href="{address}" class="btn btn-sm btn-download-book dropdown-item" title="The whole book as PDF">
<span class="btn__icon-container"><i class="fas fa-book"></i></span>
<span class="btn__text-container">book.pdf</span></a></li>
"""
FAULTS = (
    re.compile(r"^LaTeX Warning: (Reference `.*' on page .* undefined|Citation .* undefined)", re.MULTILINE),
    re.compile(r"^Missing character: .*", re.MULTILINE),
    re.compile(r"^! .*", re.MULTILINE),
)


def pdf_of(folder: Path) -> Path:
    """Where the PDF of the book in `folder` lies."""
    return folder / "_build" / "pdf" / NAME


def faults(log: str) -> list[str]:
    """What LaTeX's log says that a reader would see as a fault."""
    found = [match[0] for pattern in FAULTS for match in pattern.finditer(log)]
    for match in re.finditer(r"^Overfull \\hbox \(([\d.]+)pt too wide\).*", log, re.MULTILINE):
        if float(match[1]) > TOO_WIDE:
            found.append(match[0])
    return found


def typeset(latex: Path) -> Path:
    """Run LaTeX in the folder of `book.tex` until references are settled; return the PDF."""
    log = latex / "book.log"
    environment = {**os.environ, "max_print_line": "10000"}  # the log's lines whole
    try:
        run = subprocess.run(
            LATEX, cwd=latex, env=environment, check=False, capture_output=True, text=True, errors="replace"
        )
    except FileNotFoundError:
        raise BuildError("latexmk is missing: run sh tools/need_texlive.sh") from None
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else run.stdout + run.stderr
    found = faults(text)
    if run.returncode != 0 or found:
        raise BuildError("LaTeX: " + ("; ".join(found[:20]) or text[-2000:]) + f"; all of it is in {log}")
    return latex / "book.pdf"


def offer(html: Path, pdf: Path) -> None:
    """Put the PDF beside the built pages, and into the download menu of each."""
    shutil.copy(pdf, html)
    for path in html.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if "btn-download-book" not in page:
            item = ITEM.format(address="../" * (len(path.relative_to(html).parts) - 1) + pdf.name)
            page = DOWNLOADS.sub(lambda menu, item=item: menu[0] + item, page, count=1)
            path.write_text(page, encoding="utf-8")


def build(folder: Path = ROOT) -> Path:
    """Make the PDF of the book in `folder`; return it.

    `BuildError` where notebooks were not executed since they changed, and where LaTeX or its log says that something is
    wrong.
    """
    folder = Path(folder).resolve()
    check_version()
    try:
        notebooks = executed.check(folder, check_toc(folder))
    except NotebookError as error:
        raise BuildError(f"{error}: run make book") from None
    pdf = pdf_of(folder)
    pdf.parent.mkdir(parents=True, exist_ok=True)
    pdf.unlink(missing_ok=True)
    shutil.copy(typeset(render(folder, notebooks, "latex")), pdf)
    if (folder / "_build" / "html" / COMPLETE).is_file():
        offer(folder / "_build" / "html", pdf)
    return pdf


def main() -> int:
    start = time.monotonic()
    print("== Making the PDF from the executed notebooks", flush=True)
    try:
        pdf = build()
    except BuildError as error:
        print(f"\nThe PDF was not made: {error}", file=sys.stderr)
        return 1
    minutes, seconds = divmod(round(time.monotonic() - start), 60)
    print(f"\nThe PDF is made ({pdf.stat().st_size / 1e6:.1f} MB, {minutes} min {seconds} s): {pdf}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
