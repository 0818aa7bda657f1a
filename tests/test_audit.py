"""The audit page: every entry has the same form, a cell that shows what was observed, and a proved statement."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
RESERVATION = "**Claim.** *As a public summary reports it; the paper may state the condition that we add.*"


def entries():
    """Number -> the text of each entry, with its code cells as ``<code>``."""
    page = nbformat.read(ROOT / "chapters" / "appendix-audit.ipynb", as_version=4)
    text = "\n\n".join("<code>" if cell.cell_type == "code" else cell.source for cell in page.cells)
    parts = re.split(r"^\(audit-(\d+)\)=\n## \1\. ", text.partition("## Our own slips")[0], flags=re.MULTILINE)
    return {int(number): body for number, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_entries_are_numbered():
    assert list(entries()) == list(range(1, 14))


@pytest.mark.parametrize("number", entries())
def test_entry_has_the_form(number):
    title, _, body = entries()[number].partition("\n\n")
    assert title
    assert body.startswith(RESERVATION)
    claim, observed, corrected = re.split(r"\*\*We observe\.\*\*|\*\*Corrected statement\.\*\*", body)
    assert "<code>" in observed and "<code>" not in claim and "<code>" not in corrected
    assert re.search(r"\{prf:ref\}`(thm|prop|lem|cor)-", corrected)


def test_own_slips_come_with_a_counterexample():
    page = nbformat.read(ROOT / "chapters" / "appendix-audit.ipynb", as_version=4)
    start = next(i for i, cell in enumerate(page.cells) if "## Our own slips" in cell.source)
    assert [cell.cell_type for cell in page.cells[start:]].count("code") >= 3
