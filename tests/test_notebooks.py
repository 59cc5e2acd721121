"""The lessons keep the rules of tools/notebook_rules.py, and each rule is seen to bite on a
notebook that breaks it."""

import base64
import io
import json
import re

import lesson_loop
import nbformat
import notebook_rules as rules
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from prose_numbers import derived, numbers
from refresh_notebooks import NOTEBOOK_METADATA, WIDGET_VIEW, main, refreshed

from roofline_lib.course.lessons import lessons

ROOT, LESSONS = rules.ROOT, rules.lessons()
PNG = re.compile(r'"image/png": "([^"]*)"')
name = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


@name
@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_lesson_keeps(rule, path):
    assert rules.faults(rules.read(path), path, [rule]) == []


def test_median_code_cell_has_four_lines_at_most():
    assert rules.median_code_lines(rules.read(path) for path in LESSONS) <= 4


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (i > 0), id=path.stem)
        for i, path in enumerate(LESSONS)
    ],
)
def test_refresh_gives_no_diff(path):
    """Text is equal to the letter. Pictures may differ by what another processor rounds
    differently: a few pixels."""
    stored = path.read_text(encoding="utf-8")
    rerun = refreshed(stored, path.parent)
    assert PNG.sub('"image/png": ""', rerun) == PNG.sub('"image/png": ""', stored)
    assert [
        differing_pixels(*pair) > 20
        for pair in zip(PNG.findall(rerun), PNG.findall(stored), strict=True)
    ].count(True) == 0


def differing_pixels(*pngs):
    one, other = (
        Image.open(io.BytesIO(base64.b64decode(png.replace("\\n", "")))).convert("RGB")
        for png in pngs
    )
    if one.size != other.size:
        return one.width * one.height
    return int((np.abs(np.asarray(one, int) - np.asarray(other, int)).max(axis=2) > 64).sum())


def looped():
    """A guess, the cell that answers it, and the text that is folded behind it."""
    guess = new_code_cell("guess = ...  # percent", id="guess", execution_count=2)
    answer = new_code_cell(
        "share = 100 / 120\nprint(share)\nrl.guessed(guess, share, 'percent')",
        id="answer",
        execution_count=3,
        metadata={"alt": "A roof and a point far below it.", "jupyter": {"source_hidden": True}},
    )
    answer.outputs = [
        new_output("stream", name="stdout", text="0.833 percent, 120 ms\n"),
        new_output(
            "display_data",
            data={"text/plain": "<Figure size 576x288 with 1 Axes>", "image/png": "iVBORw0KGgo="},
        ),
    ]
    why = "<details><summary>Run, then open</summary>\n\n0.83 percent of 120 ms.\n\n</details>"
    return [
        new_markdown_cell("## 2. A part\n\nA job takes 120 ms; what share?", id="predict"),
        guess,
        answer,
        new_markdown_cell(f"It is little.\n\n{why}", id="why"),
    ]


def good():
    """A small notebook that keeps every rule."""
    code = new_code_cell(
        "time = 4096 * 2\nprint('2.147 ms, 31.5 FLOP/byte, 97.46 %, 137 GFLOP')",
        id="formula",
        execution_count=1,
    )
    code.outputs = [
        new_output("stream", name="stdout", text="2.147 ms, 31.5 FLOP/byte, 97.46 %, 137 GFLOP\n")
    ]
    text = new_markdown_cell(
        "It takes **2.1 ms** or 2,147 µs; 137 billion FLOP, 97.5% of 20 TFLOP/s at "
        "$m = **4096**$, 8.192 kB.",
        id="t",
    )
    return new_notebook(
        cells=[text, code, *looped()],
        metadata=NOTEBOOK_METADATA | {"given": ["20 TFLOP/s", "8192 B"]},
    )


def test_a_good_notebook_has_no_fault(tmp_path):
    assert rules.faults(good(), tmp_path / "a.ipynb") == []


def set_count(notebook, count):
    notebook.cells[1].execution_count = count


def add_output(notebook, kind, **content):
    notebook.cells[1].outputs.append(new_output(kind, **content))


def say(notebook, text):
    notebook.cells[0].source += " " + text


BREAKS = [
    ("counted", lambda n: set_count(n, None)),
    ("counted", lambda n: set_count(n, 2)),
    ("quiet", lambda n: add_output(n, "error", ename="ValueError", evalue="no", traceback=[])),
    ("quiet", lambda n: add_output(n, "stream", name="stderr", text="careful")),
    ("quiet", lambda n: add_output(n, "stream", name="stdout", text="RuntimeWarning: overflow")),
    (
        "quiet",
        lambda n: add_output(n, "execute_result", data={"text/plain": "<Figure at 0x7f00aa11>"}),
    ),
    ("quiet", lambda n: add_output(n, "stream", name="stdout", text="read /home/ann/a.toml")),
    ("quiet", lambda n: add_output(n, "execute_result", data={"text/plain": "np.float64(3.0)"})),
    ("quiet", lambda n: n.cells[1].update(source="time = 4096 * 2;")),
    ("named", lambda n: n.cells[0].update(id="formula")),
    ("named", lambda n: n.cells[0].update(id="3f9a01bc")),
    ("named", lambda n: n.cells[0].update(id="3c0ed9e5-ab52-4ef6-a5a9-5b2d2ab59a1f")),
    ("named", lambda n: n.cells[0].update(id="cell-3")),
    ("small", lambda n: say(n, "word" * 50_000)),
    ("plain", lambda n: n.update(nbformat_minor=4)),
    ("plain", lambda n: n.metadata.update(widgets={})),
    ("plain", lambda n: n.metadata.language_info.update(version="3.11.2")),
    ("plain", lambda n: n.cells[1].metadata.update(execution={})),
    (
        "still",
        lambda n: add_output(n, "display_data", data={WIDGET_VIEW: {}, "text/plain": "a slider"}),
    ),
    ("linked", lambda n: say(n, "See [the next](99_nowhere.ipynb).")),
    ("proven", lambda n: say(n, "It takes 2.2 ms.")),
    ("proven", lambda n: say(n, "It takes 2.147 s.")),
    ("proven", lambda n: say(n, "It moves 31.5 GB.")),
    ("proven", lambda n: say(n, "That is **1024**.")),
    ("proven", lambda n: say(n, r"$$\frac{1}{2} = 31.4\ \text{FLOP/byte}$$")),
    ("proven", lambda n: n.metadata.update(given=["20 TFLOP/s", "8192 B", "3 TB/s"])),
    ("proven", lambda n: n.metadata.update(given=["8192 B"])),
    ("used", lambda n: n.cells[4].update(source="share = 100 / 120\nprint(share, guess)")),
    ("used", lambda n: n.cells[3].update(source="guess, suspect = ..., ...")),
    ("folded", lambda n: n.cells[5].update(source=n.cells[5].source + " It is 0.83 percent.")),
    ("folded", lambda n: n.cells[2].update(source="## Why 0.83 percent\n\nA job takes 120 ms.")),
    (
        "covered",
        lambda n: n.cells[4].update(
            source="rl.guessed(guess, 5 / 6)", metadata={"alt": n.cells[4].metadata.alt}
        ),
    ),
    ("narrow", lambda n: n.cells[4].update(source=n.cells[4].source + "  # " + "wide " * 20)),
    ("short", lambda n: say(n, "word " * 130 * 34)),
    ("described", lambda n: n.cells[4].metadata.pop("alt")),
    ("described", lambda n: n.cells[4].metadata.update(alt="A picture.")),
    ("plain", lambda n: n.cells[4].metadata.update(jupyter={"outputs_hidden": True})),
]


@pytest.mark.parametrize(("rule", "break_it"), BREAKS)
def test_rule_bites(rule, break_it, tmp_path):
    notebook = nbformat.from_dict(good())
    break_it(notebook)
    assert {fault.partition(":")[0] for fault in rules.faults(notebook, tmp_path / "a.ipynb")} == {
        rule
    }


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("A 4096 × 4096 product, 20 minutes, lesson 8, F3.7, 3D", []),
        (
            "**A 4096 × 512 product** on an A100 40GB, Llama 2 7B, fp32, b/4, `8 GB`",
            ["4096", "512"],
        ),
        (
            "550 *billion* bytes, 2 × 10¹² FLOP/s, 12 tokens per second",
            ["550 billion bytes", "2 × 10^12 FLOP/s", "12 tokens per second"],
        ),
        (r"$2{,}000\ \text{GB/s}$ and 10<sup>9</sup> bytes", ["2,000 GB/s", "10^9 bytes"]),
        ("from 4 to 600 TFLOP/s", ["4", "600 TFLOP/s"]),
        ("a 5 ms step, 97.5% of it, 1.98 GHz", ["5 ms", "97.5%", "1.98 GHz"]),
    ],
)
def test_numbers_found_in_prose(markdown, found):
    assert [number.text for number in derived(markdown)] == found


@pytest.mark.parametrize(
    ("prose", "printed", "agrees"),
    [
        ("4.4 GB", "4.36 GB", True),
        ("4.4 GB", "4360 MB", True),
        ("4.3 GB", "4.36 GB", False),
        ("4.36 GB", "4 GB", False),
        ("4 MiB", "4.194 MB", True),
        ("600 TFLOP/s", "612 TFLOP/s", False),
        ("over 600 TFLOP/s", "612 TFLOP/s", True),
        ("4 to 6 TFLOP/s", "4 GFLOP/s", False),
        ("31.5 FLOP/byte", "intensity 31.5", True),
        ("4 GB", "4", False),
        ("2.5 %", "0.025", True),
    ],
)
def test_numbers_agree_to_the_precision_of_the_prose(prose, printed, agrees):
    assert numbers(prose)[0].stated_by(numbers(printed, glued=True)[0]) is agrees


def test_ids_are_read_as_they_stand(tmp_path):
    notebook = good()
    notebook.cells[0].id = "formula"
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(notebook))  # nbformat's own reader and writer would mend it silently
    assert rules.faults(rules.read(path), path) == ["named: cell id formula stands twice"]


def test_refresh_leaves_a_failing_notebook_alone(tmp_path, capsys):
    fails = tmp_path / "fails.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0", id="zero")]), fails)
    before = fails.read_bytes()
    assert main([fails]) == 1
    assert fails.read_bytes() == before
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_refresh_stores_a_clean_run(tmp_path):
    path = tmp_path / "widget.ipynb"
    source = "import ipywidgets\nprint('2.15 ms')\nipywidgets.IntSlider()"
    cell = new_code_cell(
        source,
        id="slider",
        execution_count=7,
        metadata={"collapsed": True, "tags": ["wide"], "alt": "A slider."},
    )
    nbformat.write(new_notebook(cells=[cell], metadata={"authors": []}), path)
    assert main([path]) == 0
    stored = rules.read(path)
    assert rules.faults(stored, path) == []
    assert stored.cells[0].metadata == {"tags": ["wide"], "alt": "A slider."}
    assert rules.printed(stored.cells[0]) == "2.15 ms\n\nIntSlider(value=0)"
    assert refreshed(path.read_text(), tmp_path) == path.read_text()


def test_folded_code_stays_folded(tmp_path):
    """And no other setting of an editor is kept."""
    cells = [
        new_code_cell("1", id="a", metadata={"jupyter": {"source_hidden": True}}),
        new_code_cell("2", id="b", metadata={"jupyter": {"outputs_hidden": True}}),
    ]
    stored = refreshed(nbformat.writes(new_notebook(cells=cells)), tmp_path)
    assert [cell.metadata for cell in nbformat.v4.reads(stored).cells] == [
        {"jupyter": {"source_hidden": True}},
        {},
    ]


def test_minutes_count_reading_running_guessing_and_answering():
    """130 words, three cells, one guess and two checks: 1 + 1 + 1.5 + 4 minutes."""
    cells = [
        new_markdown_cell("word " * 130),
        new_markdown_cell("> **Optional.** Trivia\n> " + "word " * 50),
        new_markdown_cell(
            "<details>\n<summary>Optional: more</summary>\n" + "word " * 50 + "</details>"
        ),
        new_code_cell("guess = ..."),
        new_code_cell("rl.guessed(guess, 3)"),
        new_code_cell("rl.check('a.b', ...)\nrl.check('a.c', ...)"),
        new_code_cell("setup()", metadata={"jupyter": {"source_hidden": True}}),
    ]
    assert lesson_loop.minutes(new_notebook(cells=cells)) == pytest.approx(7.5)


def test_timings_stay_as_they_were_stored(tmp_path):
    path = tmp_path / "timed.ipynb"
    clock = "import time\nprint(time.perf_counter())"
    cells = [
        new_code_cell(clock, id=name, metadata={"tags": tags})
        for name, tags in [("timed", ["nbval-ignore-output"]), ("plain", [])]
    ]
    nbformat.write(new_notebook(cells=cells), path)
    first = nbformat.v4.reads(refreshed(path.read_text(), tmp_path))
    again = nbformat.v4.reads(refreshed(nbformat.writes(first), tmp_path))
    assert again.cells[0].outputs == first.cells[0].outputs != []
    assert again.cells[1].outputs != first.cells[1].outputs


def test_glossary_is_in_order_and_knows_no_other_lesson():
    rows = re.findall(
        r"^\| (.+) \| .+ \| ([\d, ]+) \|$",
        (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"),
        re.M,
    )
    words = [word.casefold() for word, _ in rows]
    assert len(words) > 50 and words == sorted(set(words))
    named = {int(number) for _, numbers in rows for number in numbers.split(",")}
    assert named <= {lesson.number for lesson in lessons()}


@pytest.mark.parametrize("path", rules.exercises(), ids=lambda path: path.stem)
@pytest.mark.parametrize("rule", rules.EXERCISE_RULES, ids=lambda rule: rule.__name__)
def test_exercises_keep(rule, path):
    assert rules.faults(rules.read(path), path, [rule]) == []


def test_rules_of_exercises_bite(tmp_path):
    """25 minutes: one value, its words, half a page; and the two links."""
    answers = f"](../../solutions/{tmp_path.name}/a.ipynb)"
    cells = [
        new_markdown_cell(f"# Exercises\n\n20 minutes. [Answers{answers}"),
        new_code_cell("rl.check('a.b', ...)"),
        new_code_cell("def f(x):\n    return ...  # your answer"),
        new_markdown_cell("Next: [more](../../README.md)."),
    ]
    path, sheet = tmp_path / "a.ipynb", new_notebook(cells=cells)
    both = [rules.timed, rules.led_on]
    assert rules.faults(sheet, path, both) == []
    sheet.cells[0].source = "# Exercises\n\n90 minutes."
    sheet.cells[3].source = "The end."
    found = rules.faults(sheet, path, both)
    assert [fault.partition(":")[0] for fault in found] == ["timed", "led_on", "led_on"]
