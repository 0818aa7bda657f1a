"""A certificate as a table, in plain text and in HTML (chapter 5)."""

import math
from html import escape

HEADER = ("hypothesis", "measured", "", "needed", "margin")


def _number(value):
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3g}"


def _rows(certificate):
    for h in certificate.hypotheses:
        mark = "" if h.holds else "  fails"
        yield h.name, _number(h.measured), h.sense, _number(h.needed), _number(h.margin) + mark


def _verdict(certificate):
    word = certificate.form.replace("closed-", "closed ")
    return f"{word} form, tau = {certificate.tau:g}: {'certified' if certificate.holds else 'REFUSED'}"


def _outcome(certificate):
    """Lines of what was measured and, if it holds, of what it guarantees."""
    at = (("||R_0||", certificate.residual_norm), ("||Y||", certificate.target_norm))
    yield (*at, ("alpha", certificate.alpha), ("omega", certificate.omega))
    if certificate.holds:
        yield (("step mu", certificate.step), ("factor of Phi per step", certificate.rate))


def as_text(certificate) -> str:
    """The certificate as lines of text: verdict, hypotheses with margins, and what it guarantees or would help."""
    rows = [HEADER, *_rows(certificate)]
    width = max(len(row[0]) for row in rows)
    lines = [_verdict(certificate)]
    lines += [
        f"  {name:<{width}}  {a:>9} {sense:<2} {b:>9}  {margin:>9}".rstrip() for name, a, sense, b, margin in rows
    ]
    lines += ["  " + "   ".join(f"{name} = {_number(value)}" for name, value in line) for line in _outcome(certificate)]
    return "\n".join(lines + [f"  why: {reason}" for reason in certificate.advice])


def as_html(certificate) -> str:
    """The same as a small HTML table."""

    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in _rows(certificate))
    outcome = ", ".join(f"{name} = {_number(value)}" for line in _outcome(certificate) for name, value in line)
    reasons = "".join(f"<p>{escape(reason)}</p>" for reason in certificate.advice)
    caption = f"<caption>{escape(_verdict(certificate))}</caption>"
    return f"<table>{caption}{row(HEADER, 'th')}{body}</table><p>{escape(outcome)}</p>{reasons}"
