"""The page of the library's public names, grouped by topic, from their docstrings.

The docstrings are read as Markdown, which is how they are written.
"""

import inspect
import re
from functools import cached_property

import roofline_lib as rl

# each topic and the modules whose names stand under it
TOPICS = {
    "Chips and precisions": ["machines", "precisions", "peaks"],
    "Work and its bound": ["model"],
    "Operators": ["operators"],
    "Tiles": ["tiling"],
    "Caches": ["caches"],
    "Chains of products": ["chains"],
    "Language models": ["transformer", "steps", "pricing"],
    "Serving": ["serving"],
    "Training": ["training"],
    "Several chips": ["links", "collectives", "counted_collectives", "parallel"],
    "Pictures": ["rooflines", "diagrams"],
    "Explorers": ["explorers"],
    "Questions and guesses": ["checks", "questions"],
    "Printing": ["quantities"],
}
# constants know no module
CONSTANTS = {"MLPERF_LIMITS": "roofline_lib.serving", "PRECISIONS": "roofline_lib.precisions"}
# said here because a constant has no docstring
MEANINGS = {
    "MLPERF_LIMITS": "The waits that MLPerf Inference allows, as Limits, by the benchmark's name.",
    "PRECISIONS": "The names of all precisions, from the widest to the narrowest.",
}
HEAD = """# The library

Every public name of `import roofline_lib as rl`, by topic. Quantities are SI floats: FLOP, byte,
second, FLOP/s, byte/s. A `Number` is a plain number or an array of them, and arrays broadcast.
Where a machine, a model or a link is asked for, its name will do.

```{py:module} roofline_lib
```
"""


def api_page() -> str:
    """The page in MyST."""
    parts, topics = [HEAD], {name: topic_of(name) for name in rl.__all__}
    for topic in TOPICS:
        names = sorted((name for name in topics if topics[name] == topic), key=str.lower)
        shown = [described(name, getattr(rl, name)) for name in names]
        parts += [f"\n## {topic}\n", *shown]
    return "\n".join(parts)


def topic_of(name: str) -> str:
    """The topic of a public name, by the module that defines it."""
    home = getattr(getattr(rl, name), "__module__", None) or CONSTANTS[name]
    first = home.removeprefix("roofline_lib.").partition(".")[0]
    for topic, modules in TOPICS.items():
        if first in modules:
            return topic
    raise ValueError(f"rl.{name} comes from {home}, which stands under no topic of {__file__}")


def described(name: str, found: object) -> str:
    """What the page says of one public name."""
    if inspect.isclass(found):
        heading = name + signature_of(found).removesuffix(" -> None")
        return directive("class", heading, found.__doc__, members(found))
    if callable(found):
        return directive("function", name + signature_of(found), found.__doc__)
    return directive("data", name, MEANINGS[name])


def members(cls: type) -> list[str]:
    """The public methods and properties of a class, its bases of ours included."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("roofline_lib"):
            found |= vars(base)
    return [
        shown
        for name, member in sorted(found.items())
        if not name.startswith("_") and (shown := described_member(name, member))
    ]


def described_member(name: str, member: object) -> str | None:
    """What the page says of a method or property; None where it has no docstring."""
    if not getattr(member, "__doc__", None):
        return None
    if isinstance(member, property | cached_property):
        getter = member.fget if isinstance(member, property) else member.func
        kind = annotation(inspect.signature(getter).return_annotation)
        return directive("property", name, member.__doc__, type=kind)
    if isinstance(member, classmethod):
        heading = name + signature_of(member.__func__)
        return directive("method", heading, member.__doc__, classmethod="")
    if inspect.isfunction(member):
        return directive("method", name + signature_of(member), member.__doc__)
    return None


def directive(
    kind: str, heading: str, text: str, inside: list[str] = (), **options: str | None
) -> str:
    """A description of Sphinx's Python domain, the docstring and what stands inside."""
    fence = "::::" if inside else ":::"
    chosen = "".join(f":{name}: {value}\n" for name, value in options.items() if value is not None)
    body = "\n\n".join([inspect.cleandoc(text or ""), *inside])
    return f"{fence}{{py:{kind}}} {heading}\n{chosen}\n{body}\n{fence}\n"


def signature_of(found) -> str:
    """The signature as a reader wants it: no `self`, types by their own names."""
    signature = inspect.signature(found)
    kept = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    parts, star = [], False
    for one in kept:
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(parameter(one))
        star = star or one.kind is one.VAR_POSITIONAL
    returned = annotation(signature.return_annotation)
    return f"({', '.join(parts)})" + (f" -> {returned}" if returned else "")


def parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = annotation(one.annotation)
    text = f"{stars}{one.name}" + (f": {kind}" if kind else "")
    if one.default is one.empty:
        return text
    return f"{text} = {default(one.default)}" if kind else f"{text}={default(one.default)}"


def default(value: object) -> str:
    shown = repr(value)
    return shown if re.fullmatch(r"[\w.+-]+|'[^']*'|\(\)|\{\}", shown) else "..."


def annotation(kind: object) -> str | None:
    """A type in words: without modules, None where nothing is said."""
    if kind is inspect.Signature.empty:
        return None
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", text.replace("'", ""))
    return text.replace("float | ndarray", "Number").replace("Value", "Number")
