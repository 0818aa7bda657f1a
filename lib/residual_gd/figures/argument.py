"""The map of an argument: every statement on a line, in the order of the book, joined by arcs to those it uses.

Drawn as SVG inside the page, so that its lines are links, its text follows the reader's light or dark mode, and its
width fits a telephone.
"""

from dataclasses import dataclass, field
from html import escape

from ..validation import require

WIDTH, ROW, HEAD, DOTS, TEXT = 360, 24, 38, 100, 112  # in units of the drawing, one CSS pixel on a telephone
COLOURS = ("#2F7FC1", "#D2691E", "#23946B", "#B6589B", "#7E6BC4", "#8A7A1F")  # at least 3:1 on white and on black
STYLE = """
.text_html:has(> .argument-map) { background: none !important; color: inherit !important; padding: 0 !important; }
.argument-map svg { display: block; width: 100%; max-width: 480px; height: auto; font-family: inherit; }
.argument-map text { fill: currentColor; font-size: 13px; }
.argument-map .chapter, .argument-map .theorem { font-weight: 700; }
.argument-map a:hover text { text-decoration: underline; }
.argument-map path { fill: none; stroke-width: 1.2; opacity: 0.65; }
.argument-map svg:has(.step:hover) path, .argument-map svg:has(.step:focus-within) path { opacity: 0.08; }
"""


@dataclass(frozen=True)
class ArgumentMap:
    """A drawn argument. Shows itself as HTML in a notebook or page, and as text elsewhere.

    steps: objects with ``id``, ``chapter``, ``label``, ``theorem`` (drawn bold) and ``uses`` (ids of earlier steps), in
    order. chapters: chapter key -> title. links: step id or chapter key -> address; one without stays plain text.
    """

    steps: tuple
    chapters: dict
    links: dict = field(default_factory=dict)

    def __post_init__(self):
        seen, chapter = set(), None
        for step in self.steps:
            require(step.id not in seen, "steps", "every id once", repr(step.id))
            require(step.chapter in self.chapters, "steps", "chapters of the map", repr(step.chapter))
            unknown = [used for used in step.uses if used not in seen]
            require(not unknown, "steps", f"{step.id} to use earlier steps", ", ".join(unknown))
            if step.chapter != chapter:
                chapter = step.chapter
                require(
                    all(s.chapter != chapter for s in self.steps if s.id in seen),
                    "steps",
                    "the steps of a chapter together",
                    repr(chapter),
                )
            seen.add(step.id)

    @property
    def rows(self) -> tuple[dict[str, float], dict[str, float], float]:
        """Height of every chapter's title and of every step's line, and of the whole."""
        titles, lines, y = {}, {}, 0.0
        for step in self.steps:
            if step.chapter not in titles:
                titles[step.chapter] = y + HEAD - 14
                y += HEAD
            lines[step.id] = y + ROW / 2
            y += ROW
        return titles, lines, y + 6

    def svg(self) -> str:
        """The drawing."""
        titles, lines, height = self.rows
        colour = dict(zip(self.chapters, COLOURS * len(self.chapters), strict=False))
        number = {step.id: k for k, step in enumerate(self.steps)}
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="group" aria-label="Map of the argument: '
            f'{len(self.steps)} statements, an arc from each to the later ones whose proofs use it">'
        ]
        chapter_of = {step.id: step.chapter for step in self.steps}
        for step in self.steps:
            for used in step.uses:
                reach = min(130.0, 16 + 0.17 * (lines[step.id] - lines[used]))
                parts.append(
                    f'<path class="e{number[used]} e{number[step.id]}" stroke="{colour[chapter_of[used]]}" '
                    f'd="M{DOTS} {lines[used]:g}C{DOTS - reach:.0f} {lines[used]:g} '
                    f'{DOTS - reach:.0f} {lines[step.id]:g} {DOTS} {lines[step.id]:g}"/>'
                )
        for key, y in titles.items():
            title = f'<text class="chapter" x="{TEXT}" y="{y:g}">{escape(self.chapters[key])}</text>'
            parts.append(self._linked(key, title))
        for step in self.steps:
            y, kind = lines[step.id], ' class="theorem"' if step.theorem else ""
            label = f'<text{kind} x="{TEXT}" y="{y + 4.5:g}">{escape(step.label)}</text>'
            dot = f'<circle cx="{DOTS}" cy="{y:g}" r="{5 if step.theorem else 3.5}" fill="{colour[step.chapter]}"/>'
            # the empty rectangle makes the whole line sensitive to the pointer
            area = f'<rect x="{DOTS - 8}" y="{y - ROW / 2:g}" width="{WIDTH - DOTS + 8}" height="{ROW}" opacity="0"/>'
            parts.append(f'<g class="step s{number[step.id]}">{self._linked(step.id, area + dot + label)}</g>')
        return "\n".join([*parts, "</svg>"])

    def _linked(self, key, content):
        return f'<a href="{escape(self.links[key])}">{content}</a>' if key in self.links else content

    def words(self) -> list[tuple[str, list[str]]]:
        """The map in words: for each chapter its title, and a sentence for each statement."""
        label = {step.id: step.label for step in self.steps}
        found = {}
        for step in self.steps:
            uses = "; ".join(label[used] for used in step.uses)
            found.setdefault(step.chapter, []).append(f"{step.label}: uses {uses}." if uses else f"{step.label}.")
        return [(self.chapters[key], sentences) for key, sentences in found.items()]

    def _repr_html_(self):
        lit = "".join(
            f".argument-map svg:has(.s{k}:hover) .e{k}, .argument-map svg:has(.s{k}:focus-within) .e{k} "
            "{ opacity: 1; stroke-width: 2.4; }\n"
            for k in range(len(self.steps))
        )
        listed = "".join(
            f"<p><strong>{escape(title)}</strong></p><ul>{''.join(f'<li>{escape(s)}</li>' for s in sentences)}</ul>"
            for title, sentences in self.words()
        )
        return (
            f'<div class="argument-map"><style>{STYLE}{lit}</style>\n{self.svg()}\n'
            f"<details><summary>The same map in words</summary>{listed}</details></div>"
        )

    def __repr__(self):
        return "\n".join(f"{title}\n" + "\n".join(f"  {s}" for s in sentences) for title, sentences in self.words())
