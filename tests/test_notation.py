"""The table of notation: its form, its code names against the library, what the page shows."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import residual_gd
from residual_gd.majorants import Majorant
from residual_gd.notation import read, table
from residual_gd.transformer import Forward, Layer, Transformer

LIBRARY = Path(residual_gd.__file__).parent
HEAD = "| symbol | TeX | meaning | shape | code |\n|---|---|---|---|---|\n"


def defined_names():
    """Every name that the library defines: functions, classes, fields, arguments, variables."""
    found = set()
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return found


def test_every_code_name_exists_in_the_library():
    names = {name for symbol in table().symbols for name in symbol.code}
    blocks = set(Transformer(d=2, d_k=1, m=2, c=1).blocks)
    assert names - defined_names() - blocks == set()
    assert blocks <= names


def test_network_and_majorant_use_the_table():
    names = {name for symbol in table().symbols for name in symbol.code}
    of_network = {field.name for field in fields(Transformer) if field.name != "activation"}
    assert {"d", "d_k", "m", "c", "layers", "heads", "beta_attention", "beta_ffn"} <= of_network & names
    of_layer = {field.name for field in fields(Layer)} | {field.name for field in fields(Forward)}
    assert {"G", "S", "Z", "E", "A", "H", "F"} <= names & (of_layer | set(dir(Forward)))
    assert {"first", "second"} <= names & {field.name for field in fields(Majorant)}


def test_no_symbol_has_two_rows():
    # "gamma, c_2" are two symbols, "H = A W_2 + beta_F Z" is one with its formula, "T_{m,n}" has a comma of its own
    symbols = [
        re.split(r" = |\(", part)[0].strip()
        for symbol in table().symbols
        for part in re.split(r"[,;]\s(?![^{]*\})", symbol.symbol)
    ]
    assert sorted(s for s in set(symbols) if symbols.count(s) > 1 and s not in ("...",)) == []


def test_every_row_is_complete_and_its_tex_balanced():
    for symbol in table().symbols:
        assert symbol.symbol and symbol.meaning and symbol.shape and symbol.code, symbol
        assert re.fullmatch(r"\$[^$]+\$", symbol.tex), symbol.tex
        for text in (symbol.tex, symbol.meaning, symbol.shape):
            assert text.count("$") % 2 == 0 and text.count("{") == text.count("}"), text


def test_search_finds_symbols_meanings_and_code():
    assert [s.symbol for s in table().search("Step Size").symbols] == ["mu, tau"]
    assert "beta_attention" in str(table().search("beta_ffn"))
    assert table().search("no such word").symbols == ()


def test_markdown_has_a_line_for_every_symbol():
    lines = table()._repr_markdown_().splitlines()
    assert len(lines) == 2 + len(table().symbols)
    assert {line.count("|") for line in lines} == {4}
    assert "pre-activation: $N \\times m$" in lines[2 + [s.code for s in table().symbols].index(("E",))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no table", "text: expected a table with the columns symbol, TeX, meaning, shape, code, got another one"),
        (HEAD + "| x | $x$ | 1 | `x` |", r"text: expected 5 cells a row, got x | $x$ | 1 | `x`"),
    ],
)
def test_another_table_is_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read(text)
