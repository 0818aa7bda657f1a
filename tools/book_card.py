"""Sphinx extension: the directive `statement`, which repeats the text of a numbered statement on another page.

    :::{statement} thm-rate-smooth
    :::

The text is taken from the chapter at every build, so that the two can't differ. Its equations lose their numbers here.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class repeated_statement(nodes.General, nodes.Element):
    """Stands where the text of the statement `label` goes."""


class Statement(SphinxDirective):
    required_arguments = 1

    def run(self):
        node = repeated_statement(label=self.arguments[0])
        self.set_source_info(node)
        return [node]


class RepeatStatements(SphinxPostTransform):
    default_priority = 5  # before references are resolved

    def run(self, **_):
        for node in list(self.document.findall(repeated_statement)):
            node.replace_self(self.text_of(node))

    def text_of(self, node) -> list[nodes.Node]:
        known = getattr(self.env, "proof_list", {}).get(node["label"])
        if known is None:
            logger.warning("statement: no statement is called %s", node["label"], location=node)
            return []
        chapter = self.env.get_doctree(known["docname"])
        (found,) = [n for n in chapter.findall() if isinstance(n, nodes.Element) and n.get("label") == node["label"]
                    and "proof" in n.get("classes", [])]  # fmt: skip
        (content,) = [child for child in found.children if isinstance(child, nodes.section)]
        box = nodes.container(classes=["repeated-statement"])
        box += [child.deepcopy() for child in content.children]
        for copy in list(box.findall(nodes.Element)):
            if isinstance(copy, nodes.target):
                copy.parent.remove(copy)
                continue
            copy["ids"] = []
            if isinstance(copy, nodes.math_block):
                copy["number"] = copy["label"] = None
            if "refdoc" in copy:
                copy["refdoc"] = self.env.docname
        return [box]


def setup(app):
    app.add_node(repeated_statement)
    app.add_directive("statement", Statement)
    app.add_post_transform(RepeatStatements)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
