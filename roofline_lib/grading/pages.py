"""How the grader's pages look: the course's colours, by day and by night, in one file without
anything fetched from elsewhere."""

import html
from collections.abc import Callable
from functools import cache
from typing import Any

from roofline_lib import style
from roofline_lib.extras import extra

# by which a later run knows a page of this command from a file of someone's own
MARK = '<meta name="generator" content="roofline_lib grade">'
HEAD = f'<!doctype html><html lang="en"><meta charset="utf-8">{MARK}'

LIGHT = {
    "ink": style.INK,
    "card": style.CARD,
    "page": "#f4f2ec",
    "faint": style.FAINT,
    "grid": style.GRID,
    "memory": style.MEMORY,
    "compute": style.COMPUTE,
    "room": style.ROOM,
    "over": style.OVER,
}
# lighter ones of the same hues
DARK = {
    "ink": "#e6e8ea",
    "card": "#1d2125",
    "page": "#131618",
    "faint": "#a3abb3",
    "grid": "#3a4046",
    "memory": "#8fb8ff",
    "compute": "#ffab70",
    "room": "#7fd6a0",
    "over": "#e2a0e8",
}

_RULES = """
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:0}
main{max-width:52em;margin:0 auto;padding:1.5em 1em 4em}
main.wide{max-width:76em}
h1{font-size:1.6em;margin:0 0 .2em}h2{font-size:1.15em;margin:0}
h2 code{font-weight:400;color:var(--faint);font-size:.8em}
section{background:var(--card);border:1px solid var(--grid);border-left:5px solid var(--faint);
border-radius:8px;padding:1em 1.2em;margin:1em 0;overflow-wrap:anywhere}
section.right{border-left-color:var(--room)}section.wrong{border-left-color:var(--over)}
header p{margin:.2em 0}.who{color:var(--faint)}
.score{font-size:1.4em;font-weight:600}
.got{float:right;font-weight:600;margin-left:1em}
.right .got{color:var(--room)}.wrong .got{color:var(--over)}
.slip,.hint,.said{border-left:3px solid var(--compute);padding:.1em .8em;margin:.8em 0}
.hint{border-color:var(--memory)}.said{border-color:var(--faint);white-space:pre-wrap}
details{margin-top:.8em}summary{cursor:pointer;color:var(--memory)}
code,pre{font-family:ui-monospace,monospace;font-size:.92em}
pre{overflow-x:auto;white-space:pre-wrap}
.scroll{overflow-x:auto}table{border-collapse:collapse}
th,td{padding:.3em .8em .3em 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--grid)}
th{color:var(--faint);font-weight:600}th,td b{white-space:nowrap}
td.number,th.number{text-align:right}td.status{white-space:nowrap}td.note{min-width:16em}
svg{max-width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.bar{fill:var(--memory)}.bar.full{fill:var(--room)}.bar.none{fill:var(--over)}
.axis{stroke:var(--faint)}
.beside{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:1em}
aside section{position:sticky;top:0;max-height:100vh;overflow-y:auto}
@media(max-width:50em){.beside{display:block}aside section{position:static;max-height:none}}
input,textarea,button{font:inherit;color:inherit;background:var(--page);
border:1px solid var(--faint);border-radius:4px;padding:.3em .5em}
textarea{width:100%;min-height:4em}
input[aria-invalid=true]{outline:2px solid var(--over)}
button{cursor:pointer;background:var(--memory);color:var(--card);border:0;padding:.5em 1em}
@media print{body{background:none}section{break-inside:avoid}details{display:block}}
"""


def page(title: str, body: str, *, wide: bool = False, script: str = "", allows: str = "") -> str:
    """A whole page. `title` is plain text and `body` HTML that is escaped already.

    A browser runs and fetches nothing but what stands here: `allows` is the source expression of
    `script` for the page's content security policy.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if script:
        policy += f"; script-src {allows}"
    width = ' class="wide"' if wide else ""
    return (
        f'{HEAD}<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_style()}</style>"
        f"<main{width}>{body}</main>{f'<script>{script}</script>' if script else ''}</html>\n"
    )


@cache
def _style() -> str:
    def colours(theme: dict[str, str]) -> str:
        return ";".join(f"--{name}:{colour}" for name, colour in theme.items())

    return (
        f":root{{color-scheme:light dark;{colours(LIGHT)}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{colours(DARK)}}}}}{_RULES}"
    )


def markdown(text: str) -> str:
    """HTML of a teacher's text. Its links lead nowhere from here and become their words."""
    return _renderer()(text)


@cache
def _renderer() -> Callable[[str], str]:
    mistune: Any = extra("mistune")

    class Words(mistune.HTMLRenderer):
        def link(self, text, url, title=None):
            return text

        def image(self, text, url, title=None):
            return text

    return mistune.create_markdown(renderer=Words(escape=True), plugins=["table", "math"])


def points(got: float | None, most: float) -> str:
    """`3 of 4`, or that there is no mark yet."""
    return "no mark yet" if got is None else f"{got:g} of {most:g}"
