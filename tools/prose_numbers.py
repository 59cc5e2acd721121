"""Numbers with units in text: those that a lesson's prose states, and those that its cells print.

A number of the prose counts if it carries a unit or stands in bold. `unsupported` finds those that
no cell of the lesson prints to the precision of the prose, that stand in no cell's source as a
literal, and that are not declared as inputs.
"""

import re
from bisect import bisect
from dataclasses import dataclass, replace

PREFIXES = dict(
    zip(
        ["", *"nµμumkKMGTPE"],
        [1, 1e-9, 1e-6, 1e-6, 1e-6, 1e-3, 1e3, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18],
        strict=True,
    )
)
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15}
BYTE, PER, SECOND = r"(?:[Bb]ytes?|B)", r"(?:\s?/\s?|\s+(?:per|a)\s+)", r"(?:seconds?|s)"
UNITS = [  # the name here, the prefixes it takes, how it is written; the longer ones first
    ("FLOP/byte", "kKMGTPE", rf"FLOPs?{PER}{BYTE}"),
    ("FLOP/s", "kKMGTPE", rf"FLOPs?{PER}{SECOND}"),
    ("byte/s", "kKMGTPE", rf"{BYTE}{PER}{SECOND}"),
    ("token/s", "kM", rf"tokens?{PER}{SECOND}"),
    ("FLOP", "kKMGTPE", r"FLOPs?"),
    ("byte", "kKMGTPE", BYTE),
    ("Hz", "kMG", r"Hz"),
    ("s", "nµμum", SECOND),
    ("W", "mkM", r"W"),
    ("%", "", r"(?:%|percent)"),
]
UNITS = [
    (name, re.compile(rf"({f'(?:[{prefixes}]i?)?' if prefixes else ''}){pattern}(?!\w|/\w)"))
    for name, prefixes, pattern in UNITS
]
NUMBER = re.compile(
    # not inside a name (A100, fp32, llama-2-7b), a fraction or a power
    r"(?<![\w.^/#])(?<!\w[-–/])"
    r"(?:(\d{1,3}(?:[,\u202f\u2009]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?:[eE]([-+]?\d+)|\s*[×·*]\s*10\^([-−]?\d+))?|10\^([-−]?\d+))"
    r"(?![\d^/*]|\.\d|,\d{3}|[A-Za-z]|-[A-Za-z])"
)
NAMES = re.compile(
    r"\b(?:RTX|Llama|GPT|Mixtral|lessons?|Python|parts?|steps?|figure|chapter|section)"
    r"[ \-\u00a0]\d+(?:\.\d+)*",
    re.I,
)
ROUNDED = re.compile(
    r"(?:about|roughly|nearly|almost|over|above|below|under|around|some|than|≈|~)\s*$", re.I
)
SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


@dataclass(frozen=True)
class Number:
    """A number as written: its value in plain units, half of what its last digit stands for, its
    prefix, where it stood."""

    text: str
    value: float
    half: float
    unit: str = ""
    scale: float = 1.0
    start: int = 0
    end: int = 0

    def stated_by(self, other):
        """Whether `other`, printed or declared, rounds to this. A bare number of one digit states
        nothing that has a unit."""
        if not self.unit:
            return self._near(other.value) or self._near(other.value / other.scale)
        if other.unit:
            return other.unit == self.unit and self._near(other.value)
        two_digits = sum(map(str.isdigit, other.text)) > 1
        return two_digits and (self._near(other.value) or self._near(other.value * self.scale))

    def _near(self, value):
        return abs(value - self.value) <= self.half + 1e-9 * abs(self.value)


def numbers(text, glued=False):
    """All numbers of a text, with the unit that follows each. `glued` also takes units without a
    space ("4GB")."""
    text = SUPERSCRIPT.sub(lambda found: "^" + found[0].translate(PLAIN), text)
    text = NAMES.sub(lambda found: " " * len(found[0]), text)
    if glued:
        text = re.sub(r"(?<=\d)(?=[a-zA-Zµ]+(?:/|\b))(?![eE][-+]?\d)", " ", text)
    result = []
    for found in NUMBER.finditer(text):
        mantissa = re.sub(r"[,\u202f\u2009]", "", found[1] or "1")
        power = 10.0 ** int((found[2] or found[3] or found[4] or "0").replace("−", "-"))
        end = found.end()
        word = re.compile(rf"\s+({'|'.join(WORDS)})\b").match(text, end)
        if word:
            power, end = power * WORDS[word[1]], word.end()
        last = 10.0 ** -len(mantissa.partition(".")[2])
        if "." not in mantissa and ROUNDED.search(text[: found.start()]):
            last = 10.0 ** (len(mantissa) - len(mantissa.rstrip("0") or mantissa))
        unit, prefix, unit_end = unit_at(text, end)
        scale = BINARY.get(prefix) or PREFIXES[prefix]
        scale *= 0.01 if unit == "%" else 1
        result.append(
            Number(
                text[found.start() : unit_end],
                float(mantissa) * power * scale,
                last / 2 * power * scale,
                unit,
                scale,
                found.start(),
                unit_end,
            )
        )
    for i in range(len(result) - 1):  # in "4 to 600 TFLOP/s" both carry the unit
        first, second = result[i : i + 2]
        if (
            not first.unit
            and second.unit
            and re.fullmatch(r"\s*(?:to|–)\s*", text[first.end : second.start])
        ):
            by = second.scale
            result[i] = replace(
                first, value=first.value * by, half=first.half * by, unit=second.unit, scale=by
            )
    return result


def unit_at(text, position):
    """The unit that stands here after a space, its prefix, and where it ends; ("", "", position)
    where none does."""
    space = re.compile(r"[ \u00a0\u202f]*\n?[ \u00a0\u202f]*").match(text, position).end()
    for name, pattern in UNITS:
        found = pattern.match(text, space)
        if found and (space > position or name == "%"):
            return name, found[1], found.end()
    return "", "", position


def prose(markdown):
    """The text of a Markdown cell, its formulas as plain text, without code, tags and addresses."""
    text = re.sub(r"```.*?```|`[^`\n]*`", " ` ", markdown, flags=re.S)
    text = re.sub(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}", r"\1", text)
    text = (
        text.replace(r"\times", "×")
        .replace(r"\cdot", "·")
        .replace("{,}", ",")
        .replace(r"\%", "%")
        .replace(r"\approx", "≈")
    )
    text = re.sub(r"\\[,;:! ]|(?<=\d)~(?=\w)", " ", text)
    text = re.sub(r"10\^\{?([-−]?\d+)\}?", r"10^\1", text)
    text = re.sub(r"<sup>([-−]?\d+)</sup>", r"^\1", text)
    text = re.sub(r"\]\([^)]*\)|<[^>]+>|https?://\S+", " ", text)
    return re.sub(r"\$+", " ", text)


def derived(markdown):
    """The numbers of a Markdown cell that carry a unit or stand in bold."""
    # every second part is bold
    parts = re.split(r"\*\*", re.sub(r"(?<!\*)\*(?!\*)", "", prose(markdown)))
    bold = [len("".join(parts[:i])) for i in range(len(parts))]
    return [n for n in numbers("".join(parts)) if n.unit or bisect(bold, n.start) % 2 == 0]


def unsupported(prose_cells, printed, literals, given):
    """The numbers in the prose that nothing states, and the given ones that the prose does not use:
    two lists of texts."""
    stated = [n for text in printed for n in numbers(text, glued=True)] + given
    found = [n for cell in prose_cells for n in derived(cell)]
    everything = [n for cell in prose_cells for n in numbers(prose(cell).replace("*", ""))]
    inputs = {
        n.text
        for n in found
        for x in literals
        if abs(x - n.value) <= 1e-9 * x and (x >= 10 or not n.unit)
    }
    return (
        [
            n.text
            for n in found
            if n.text not in inputs and not any(n.stated_by(other) for other in stated)
        ],
        [g.text for g in given if not any(n.stated_by(g) for n in everything)],
    )
