"""The panel of notation on the book's pages: the symbols of the page, and of the formula that one points at.

`add` gives a finished page a button in its header and a panel (an HTML popover) with those rows of the table of
notation whose symbols the page's formulas have. Each formula carries the numbers of its own rows; `assets/notation.js`
shows these alone while one points at the formula.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from residual_gd import notation

ROWS = notation.table().symbols
FORMULA = re.compile(r'<(span|div) class="math notranslate nohighlight"([^>]*)>(.*?)</\1>', re.DOTALL)
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[A-Za-z]|[{}_^']|[^\s]")
WORDS = ("mathrm", "text", "textstyle", "mathbb", "mathcal", "mathbf", "mathfrak", "begin", "end", "label", "tag")
OTHER = ("hat", "tilde", "check")  # a letter with such a sign is another symbol
START = ("0", "k", "k+1", "*")  # at the foot of a symbol: where it is taken
RUNNING = ("b", "j", "l", "p")  # a row's index that stands for any


def _group(tokens: list[str], i: int) -> tuple[list[str], int]:
    """The tokens of the argument that begins at `i`, and where it ends."""
    if i >= len(tokens) or tokens[i] != "{":
        return tokens[i : i + 1], i + 1
    depth, start = 0, i + 1
    while i < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[i], 0)
        i += 1
        if depth == 0:
            break
    return tokens[start : i - 1], i


def atoms(tex: str) -> Iterator[tuple[str, str]]:
    """Symbols of a formula, each with its foot: `\\sigma_{\\min}(H_0)` has `\\sigma, \\min` and `H, 0`."""
    yield from _atoms(TOKEN.findall(tex))


def _atoms(tokens):
    i = 0
    while i < len(tokens):
        token = tokens[i]
        i += 1
        name = token.lstrip("\\")
        if name in WORDS:
            i = _group(tokens, i)[1]
            continue
        if name == "operatorname":
            argument, i = _group(tokens, i)
            token += "{" + "".join(argument) + "}"
        elif name in OTHER:
            i = _group(tokens, i)[1]
        elif token in ("_", "^"):  # of a bracket
            i -= 1
        elif not name.isalpha():
            continue
        foot, scripts = "", []
        while i < len(tokens) and tokens[i] in ("_", "^", "'"):
            script, end = _group(tokens, i + 1) if tokens[i] != "'" else ([], i + 1)
            if tokens[i] == "_":
                foot = "".join(script)
            if tokens[i] == "^" or "_" in script:  # a plain index is no symbol
                scripts += script
            i = end
        if token not in ("_", "^") and name not in OTHER:
            yield token, foot
        yield from _atoms(scripts)


def _index() -> dict[tuple[str, str], int]:
    """Row of each symbol of the table, by letter and foot; an index that runs stands there as "*"."""
    found = {}
    for row, symbol in enumerate(ROWS):
        for part in re.split(r"[,;]\\ ", symbol.tex.strip("$")):
            letter, foot = next(atoms(part), ("", ""))
            if letter == "\\bar" or letter.lstrip("\\") not in ("", "dots"):
                found.setdefault((letter, "*" if foot in RUNNING else foot), row)
    found["\\beta", ""] = found["\\beta", "A"]  # where both coefficients are equal
    return found


INDEX = _index()


def rows_of(tex: str) -> list[int]:
    """Rows of the table whose symbols a formula has."""
    found = set()
    for letter, foot in atoms(tex):
        tries = [foot, foot.split(",")[0], *([] if foot in ("", *START) else ["*"]), ""]
        row = next((INDEX[letter, f] for f in tries if (letter, f) in INDEX), None)
        if row is not None:
            found.add(row)
    return sorted(found)


def _text(markdown: str) -> str:
    """Text with formulas between dollars, as HTML."""
    parts = markdown.split("$")
    parts[1::2] = [_formula(part) for part in parts[1::2]]
    parts[0::2] = [html.escape(part) for part in parts[0::2]]
    return "".join(parts)


def _formula(tex: str) -> str:
    return f'<span class="math">\\({html.escape(tex)}\\)</span>'


def _row(row: int) -> str:
    symbol = ROWS[row]
    terms = ", ".join(_formula(part) for part in re.split(r"[,;]\\ ", symbol.tex.strip("$")))
    numbers = symbol.shape in ("number", "numbers")
    shape = (
        "" if numbers else f": {_text(symbol.shape.replace(f',{chr(92)} ', '$, $').replace(f';{chr(92)} ', '$; $'))}"
    )
    codes = " ".join(f"<code>{name}</code>" for name in symbol.code)
    return f'<div data-row="{row}"><dt>{terms}</dt><dd>{_text(symbol.meaning)}{shape} <small>{codes}</small></dd></div>'


BUTTON = """<button type="button" class="btn btn-sm notation-button" popovertarget="notation-panel" title="Notation"
  aria-label="Notation of this page">
  <span class="btn__icon-container"><i class="fas fa-square-root-variable"></i></span>
</button>
"""
PANEL = """<aside id="notation-panel" popover="manual" aria-labelledby="notation-title">
<header><strong id="notation-title">Notation of this page</strong>
<button type="button" class="btn btn-sm" popovertarget="notation-panel" popovertargetaction="hide"
  aria-label="Close the notation"><i class="fa-solid fa-xmark"></i></button></header>
<p class="notation-hint">Point at a formula, and its symbols alone stay here.</p>
<p class="notation-back" hidden><button type="button">Show all symbols of this page</button></p>
<template><dl>{rows}</dl></template>
<p class="notation-all"><a href="{root}chapters/appendix-notation.html">All of the book's notation</a></p>
</aside>
<script type="module" src="{root}_static/notation.js"></script>
"""


def add(page: str) -> str:
    """The page with the button and the panel; the page itself if none of the table's symbols is on it."""
    used: set[int] = set()

    def mark(match):
        tex = re.sub(r"<span class=\"eqno\">.*?</span>", "", match[3], flags=re.DOTALL)
        rows = rows_of(html.unescape(tex))
        used.update(rows)
        numbers = f' data-symbols="{" ".join(map(str, rows))}"' if rows else ""
        return f'<{match[1]} class="math notranslate nohighlight"{match[2]}{numbers}>{match[3]}</{match[1]}>'

    root = re.search(r'data-content_root="([^"]*)"', page)
    header = '<div class="article-header-buttons">'
    parts = re.split(r"(?=<article\b)|(?<=</article>)", page, maxsplit=2)
    if not root or header not in page or len(parts) < 3:
        return page
    head, article, rest = parts
    article = FORMULA.sub(mark, article)
    if not used:
        return page
    panel = PANEL.format(rows="\n".join(map(_row, sorted(used))), root=root[1])
    page = head.replace(header, header + "\n" + BUTTON, 1) + article + rest
    return page.replace("</body>", panel + "</body>", 1)
