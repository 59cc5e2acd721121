"""Sphinx's settings. A page asks no address outside the site for anything."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent)]

import roofline_lib as rl  # noqa: E402

project = "Arithmetic intensity and the roofline model"
author = "The roofline_lib authors"
copyright = "2026, the roofline_lib authors. Code: MIT. Text: CC BY 4.0"
language = "en"
smartquotes = False  # as it is written
extensions = ["myst_nb", "mathematics", "glossary_words"]
exclude_patterns = ["_pictures"]

nb_execution_mode = "off"  # a page shows the outputs that its notebook stores
nb_merge_streams = True
nb_code_prompt_show = "Show code"
nb_code_prompt_hide = "Hide"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
highlight_language = "none"  # of what does not say its language
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False
# a signature may name types that are not the library's own
nitpick_ignore_regex = [("py:class", rf"(?!(?:roofline_lib\.)?(?:{'|'.join(rl.__all__)})$).*")]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "The roofline course"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["course.css", "explorer.css"]
html_js_files = [("course.js", {"defer": "defer"}), ("explorer.js", {"defer": "defer"})]
pygments_dark_style = "a11y-high-contrast-dark"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
# the arrow keys move what scrolls sideways, a table or a picture, instead of turning the page
html_theme_options = {"navigation_with_keys": False}


def with_levels(app, page, template, context, doctree):
    """The captions of the navigation are headings and must say of which level (WCAG 4.1.2)."""
    for part in ("furo_navigation_tree", "body"):
        if context.get(part):
            context[part] = context[part].replace(
                'class="caption" role="heading"', 'class="caption" role="heading" aria-level="2"'
            )


def with_pictures(app, config):
    """The explorers' pictures, which stage.py wrote beside the sources, are served as they are."""
    config.html_static_path.append(str(Path(app.srcdir) / "_pictures"))


def setup(app):
    app.connect("config-inited", with_pictures)
    app.connect("html-page-context", with_levels, priority=900)
