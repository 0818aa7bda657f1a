"""The notation of the book: the table of symbols that the package carries in ``data/notation.md``.

``table()`` reads it; a ``Table`` shows itself as Markdown, with its formulas in TeX, or as aligned text.
"""

import re
from dataclasses import dataclass
from importlib.resources import files

from .validation import require

COLUMNS = ("symbol", "TeX", "meaning", "shape", "code")


@dataclass(frozen=True)
class Symbol:
    """A row: the symbol in ASCII and in TeX, its meaning, its shape (both with TeX), its names in the code."""

    symbol: str
    tex: str
    meaning: str
    shape: str
    code: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Table:
    """Rows of the notation, in the order of the book."""

    symbols: tuple[Symbol, ...]

    def search(self, word) -> "Table":
        """The rows with ``word`` in their symbol, meaning or code; upper and lower case count as equal."""
        word = word.lower()
        return Table(tuple(s for s in self.symbols if word in " ".join((s.symbol, s.meaning, *s.code)).lower()))

    def __str__(self):
        width = max((len(s.symbol) for s in self.symbols), default=0)
        return "\n".join(f"{s.symbol:{width}s}  {', '.join(s.code)}" for s in self.symbols)

    __repr__ = __str__

    def _repr_markdown_(self):
        rows = [f"| {_split(s.tex)} | {_meaning(s)} | {_codes(s)} |" for s in self.symbols]
        return "\n".join(["| symbol | meaning: shape | code |", "|---|---|---|", *rows])


def _split(tex):
    """Several symbols in one formula as several formulas, so that a line can break between them."""
    return tex.replace(r",\ ", "$, $").replace(r";\ ", "$; $")


def _meaning(symbol):
    numbers = symbol.shape in ("number", "numbers")
    return symbol.meaning if numbers else f"{symbol.meaning}: {_split(symbol.shape)}"


def _codes(symbol):
    return ", ".join(f"`{name}`" for name in symbol.code)


def read(text) -> Table:
    """The table in the text of a Markdown page. ValueError if the columns or a row are not as expected."""
    rows = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    require(rows and tuple(rows[0]) == COLUMNS, "text", f"a table with the columns {', '.join(COLUMNS)}", "another one")
    for row in rows:
        require(len(row) == len(COLUMNS), "text", f"{len(COLUMNS)} cells a row", " | ".join(row))
    return Table(tuple(Symbol(*row[:4], tuple(re.findall(r"\w+", row[4]))) for row in rows[2:]))


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table() -> Table:
    """The notation of the book."""
    return read((files("residual_gd") / "data" / "notation.md").read_text(encoding="utf-8"))
