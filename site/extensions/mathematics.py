"""Formulas become MathML while the site is built: a page needs no script for them.

What the converter does not know stops the build. The font, static/fonts/stix-two-math.woff2, is
STIX Two Math reduced to Latin, Greek, operators and arrows, under the licence beside it.
"""

import re

from docutils import nodes
from math_core import LatexToMathML

CONVERTER = LatexToMathML(fancy_error=False)
# space below a row, which style sheets set for all rows alike
ROW_SPACE = re.compile(r"(\\\\)\[[^\]]*\]")


def mathml(latex, display):
    return CONVERTER.convert_with_local_state(ROW_SPACE.sub(r"\1", latex), displaystyle=display)


def inline(translator, node):
    translator.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def block(translator, node):
    translator.body.append(f'<div class="formula">{mathml(node.astext(), display=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
