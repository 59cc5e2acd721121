"""How an explorer looks on a page: the style that the layout of widgets cannot express, and what
stands in an explorer's place when its Python is gone.

A page may hold any number of explorers; each brings the same style, whose rules name only classes
that start with `roofline-`.
"""

import base64

# The chosen button is dark on a light page and light on a dark one. A picture is a container, so
# that its sentences can be as wide as what is seen of it where it scrolls sideways.
_LIVE = """
.roofline-picture { container-type: inline-size }
.roofline-explorer .widget-toggle-button.mod-active {
  background: var(--jp-ui-font-color1, #212121); color: var(--jp-layout-color0, #ffffff) }
"""
# After a restart, and on a page that never had a Python, every part of a widget would show a broken
# chain.
_WITHOUT_PYTHON = """
.roofline-explorer .jupyter-widgets-disconnected::before { content: none !important }
.roofline-explorer.jupyter-widgets-disconnected::before {
  content: "No Python is behind this picture: run this cell to move it.";
  display: block; flex: 1 0 100%; color: inherit; font: bold 14px/2 sans-serif }
.roofline-explorer.jupyter-widgets-disconnected > .roofline-controls { display: none !important }
"""
STYLE = f"<style>{_LIVE}{_WITHOUT_PYTHON}</style>"

# JupyterLab and Notebook 7 put each output into a `jp-OutputArea-child`. `_NOTE` is the note's own,
# the explorer's is the next; there, what shows a widget is itself of the class `jupyter-widgets`
# only where the widget was not found.
_NOTE = ".jp-OutputArea-child:has(> .jp-OutputArea-output > .roofline-note)"
_NOT_FOUND = "> .jp-OutputArea-output.jupyter-widgets"


def note_for_later(picture: bytes, said: str) -> str:
    """HTML that no one sees beside a live explorer. In a notebook opened again, whose Python is
    gone, it takes the explorer's place: "run this cell", with its picture (PNG bytes) and what was
    `said` of it (HTML).

    The picture is part of the style, so that pages which take styles away, and show the explorer's
    own still picture, do not show it twice.
    """
    data = base64.b64encode(picture).decode("ascii")
    return f"""<style>
{_NOTE}:not(:has(+ .jp-OutputArea-child {_NOT_FOUND})) {{ display: none }}
{_NOTE} + .jp-OutputArea-child:has({_NOT_FOUND}) {{ display: none }}
.roofline-note::after {{ content: url("data:image/png;base64,{data}"); display: block }}
</style>
<div class="roofline-note"><b>Run this cell</b> to move the picture.<br>{said}</div>
"""
