"""Which code of a notebook is run for a question, and when an answer is right."""

import array
import ast
import collections
import json
import math
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from harness.grading import FIRST, ROOT, read, source, write
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

import roofline_lib as rl
from roofline_lib.grading import marked
from roofline_lib.grading.inside import slicing
from roofline_lib.grading.inside.protocol import (
    json_value,
)
from roofline_lib.grading.inside.serve import execute
from roofline_lib.grading.judging import same

# Slices


def slices(*sources, name="f"):
    names = {}
    for code in slicing.slice_for(name, slicing.read_statements(sources, name).statements):
        exec(code, names)
    return names


def test_slice_takes_what_the_function_leans_on_and_no_more():
    names = slices(
        "import math, os\nunused = 1 / 0",
        "w = 4",
        "table = {}\nprint(oops)",
        "for k in 'ab':\n    table[k] = w",
        "def g(x):\n    return x * table['b']",
        "while False:\n    pass\nmath.pi = 4\n(os.x)",
        "w += 1",
        "def f(x):\n    return g(x) + w + math.floor(math.pi)",
    )
    assert names["f"](2) == 16 and "unused" not in names and math.pi > 3.1


def test_slice_follows_changes_made_by_calls():
    assert (
        slices("w = 1\ndef two():\n    global w\n    w = 2", "two()", "def f():\n    return w")[
            "f"
        ]()
        == 2
    )
    assert slices(
        "t = []\ndef fill(x):\n    x.append(5)", "fill(t)", "t.append(6)", "def f():\n    return t"
    )["f"]() == [5, 6]


def test_slice_ends_with_the_cell_of_the_function():
    after = ("s = 5", "del two", "math = 3", "def total(x):\n    return 0", "t.clear()")
    names = slices(
        "import math\ns, two, t = 1, 2, [4]\ndef total(x):\n    return x + s",
        "def f(x):\n    return math.floor(two * total(x)) + t[0]",
        *after,
    )
    assert names["f"](3) == 12 and names["s"] == 1
    assert (
        slices(
            "def f():\n    return g() + h()",
            "def g():\n    return 1",
            "def h():\n    return 2",
            "def g():\n    return 9",
        )["f"]()
        == 3
    )
    assert slices("def f():\n    return sum([1])", "sum = 3")["f"]() == 1
    assert slices("w = 1\ndef f():\n    return 1", "def f():\n    return w", "w = 2")["f"]() == 1


@pytest.mark.parametrize(
    "fill",
    [
        "for k in (1, 2):\n    t.append(k)",
        "with open('/dev/null'):\n    t.append(1)",
        "if True:\n    t.append(1)",
        "import heapq\nheapq.heappush(t, 1)",
        "[t.append(k) for k in (1, 2)]",
        "_ = t.append(1)",
        "def fill():\n    t.append(1)\nfor k in (1, 2):\n    fill()",
        "try:\n    t.append(1)\nfinally:\n    pass",
        "def unused(x, y=t.append(1)):\n    return x",
        "def unused(x, *, y=[t.append(k) for k in (1, 2)]):\n    return x",
        "def keep(one):\n    t.append(one)\n    return one\n@keep\ndef unused():\n    return 1",
        "@t.append\ndef unused():\n    return 1",
        "@t.append\nclass Unused:\n    pass",
    ],
)
def test_slice_has_what_fills_an_object(fill):
    assert slices("t = []", fill, "def f():\n    return t")["f"]()


def test_slice_leaves_out_who_only_looks_at_the_function():
    names = slices(
        "def g(x):\n    return x",
        "def f(x):\n    return g(x)\nseen = 1\nfor k in range(3):\n    seen += f(k) + g(k)",
    )
    assert "seen" not in names and "k" not in names


def test_future_await_and_continued_lines():
    assert (
        slices("from __future__ import annotations", "def f(x: nobody) -> nothing:\n    return x")[
            "f"
        ](2)
        == 2
    )
    assert (
        slices(
            "%precision 3\ndef f(x):\n    text = ('%d'\n            % x)\n    return text\n"
            "!ls it's ("
        )["f"](2)
        == "2"
    )
    text = "import asyncio\nawait asyncio.sleep(0)\nasync def g():\n    return 5\nfive = await g()"
    names = {}
    assert [
        execute(code, names, None) for _, code, _ in slicing.read_statements([text], "f").statements
    ] == [None] * 4 and names["five"] == 5


def test_slice_is_not_fooled_by_local_names():
    assert "endless" not in slices(
        "endless = n = 1", "def f(n):\n    endless_ = n\n    return endless_"
    )


def test_magics_and_other_languages():
    texts = (
        "%time x",
        "%%bash\nls",
        "%%time\nx = 1",
        "if 1:\n    !ls\nx = !ls",
        "x = (5\n  % 3)",
        "f?",
    )
    assert [len(slicing.parse(text)) for text in texts] == [1, 0, 1, 2, 1, 1]


@pytest.mark.parametrize(
    "cell",
    [
        "    def f(a):\n        return a + w\n    w = 2",
        "\n\n  %time\n  def f(a):\n      return a + w\n\n  w = 2\n",
        ">>> def f(a):\n...     return a + w\n...\n>>> w = 2\n",
        "  >>> w = 2\n  >>> def f(a):\n  ...     return a + w\n",
        "In [3]: def f(a):\n   ...:     return a + w\n   ...:\nIn [4]: w = 2",
        "!pip install a \\\n  b\nw = 2\ndef f(a):\n    return a + w",
        "w = 2\nfiles = !ls \\\n  -l\ndef f(a):\n    return a + w",
        "%pip install a \\\n  b \\\n  c\nw = 2\ndef f(a):\n    return a + w",
        "!ls \\\n -l\n" * 40 + "w = 2\ndef f(a):\n    return a + w",
    ],
)
def test_cells_that_only_jupyter_reads(cell):
    """Held against IPython's own reading: what a student has run is what is judged."""
    reading = slicing.read_statements([cell], "f")
    assert not reading.skipped and slices(cell)["f"](1) == 3
    names = {"get_ipython": Mock()}
    exec(TransformerManager().transform_cell(cell), names)
    assert names["f"](1) == 3


ODD_LINES = [
    *("%matplotlib inline", "!ls", "!!ls", "x = !ls", "x = %time 1", "?f", "f?", "f??", "y = x?"),
    *("/print 1", ";print 1", ", print 1", "%", "!", "?", "=!ls", "x == !ls", "a, b = !ls"),
    *("y = 3 % 2", "y = (3\n% 2)", "z = [1,\n!ls\n]", "s = '''\n%time\n!ls\n'''", "# ?", "  "),
    *("%time x \\\n + 1", "1 +\\\n!2", "x = '%s' \\\n  % 3", "for i in '1':\n    !ls\n    %time i"),
    *(
        "a != b",
        "x = {'a': 1}; %time x",
        "await x",
        "class A:\n    !ls",
        "print('a?')",
        "x[0] = !ls",
    ),
]


def test_odd_lines_around_a_function_are_read_as_ipython_reads_them():
    """A few hundred cells of a function and odd lines, in one order after the other: where IPython
    finds the function, and only there, it is found here, with the same code."""
    rng = random.Random(1)
    function = "def f(m, n):\n    return 2*m*n"
    for _ in range(400):
        lines = rng.sample(ODD_LINES, rng.randint(1, 3))
        lines.insert(rng.randint(0, len(lines)), function)
        cell = "\n".join(lines)
        try:
            there = ast.parse(TransformerManager().transform_cell(cell)).body
        except SyntaxError:
            there = None
        try:
            here = slicing.parse(cell)
        except SyntaxError:
            here = None
        assert functions_in(here) == functions_in(there), cell


def functions_in(statements):
    if statements is None:
        return None
    return [ast.dump(node) for node in statements if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("cell", ["x = 1\n  y = 2", "...\n>> x", ">>> x = (", "x = 1 \\\n  y = 2"])
def test_cells_that_nobody_reads(cell):
    assert list(slicing.read_statements([cell], "f").skipped) == [1]


def test_prompts_in_a_text_stay_where_python_reads_the_cell():
    text = "def f():\n    '''Doubles.\n\n    >>> f(1)\n    ... more\n    '''\n    return f.__doc__"
    assert ">>> f(1)" in slices(text)["f"]()


def test_a_cell_too_long_to_be_read_costs_no_other_its_answer():
    """A picture pasted as text, for example; what is read is bounded all the same."""
    answer = "def f():\n    return 3"
    reading = slicing.read_statements(["x = '" + "a" * 1_200_000 + "'", answer], "f")
    assert list(reading.skipped) == [1] and len(reading.statements) == 1
    many = ["x = '" + "a" * 90_000 + "'"] * 20
    assert list(slicing.read_statements(many, "f").skipped) == list(range(12, 21))


@pytest.mark.parametrize(
    "body",
    [
        "...",
        "pass",
        "'words'",
        "return ...",
        "return",
        "return None",
        "raise NotImplementedError",
        "raise NotImplementedError()",
        "'words'\n    return ...  # your answer",
    ],
)
def test_stubs(body):
    assert slicing.is_stub(slicing.parse(f"def f(x):\n    {body}")[0])


@pytest.mark.parametrize(
    "body", ["return 0", "return x", "x = ...", "raise ValueError", "return 'words'", "print()"]
)
def test_no_stubs(body):
    assert not slicing.is_stub(slicing.parse(f"def f(x):\n    {body}")[0])


# Judgement

numbers = st.floats(
    allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300
).filter(lambda x: x == 0 or abs(x) > 1e-280)


@given(numbers, st.floats(-0.9e-6, 0.9e-6))
def test_within_the_tolerance_is_right(reference, off):
    for answer in (
        reference * (1 + off),
        np.float64(reference * (1 + off)),
        [reference],
        np.array(reference),
        np.array([reference]),
        np.array([[reference]]),
    ):
        assert same(json.loads(json.dumps(json_value(answer))), reference, 1e-6)


@given(numbers.filter(bool), st.floats(1.1e-6, 1e3), st.sampled_from([-1, 1]))
def test_outside_the_tolerance_is_wrong(reference, off, sign):
    assert not same(reference * (1 + sign * off), reference, 1e-6)
    assert not same([reference, reference], reference, 1e-6) and not same(
        reference, [reference, reference], 1e-6
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(json_values, st.sampled_from([3.5, [1.0, 2.0], "memory", True, math.inf, 0]))
def test_judging_never_raises_and_needs_the_value(answer, reference):
    flat = answer
    while isinstance(flat, list) and len(flat) == 1 and not isinstance(reference, list):
        flat = flat[0]
    if same(answer, reference, 1e-6):
        assert np.shape(flat) == np.shape(reference) and (
            flat == reference or np.allclose(flat, reference, rtol=2e-6, atol=1e-11)
        )
    else:
        assert flat != reference or type(flat) is not type(reference)


def test_odd_answers():
    assert not same(float("nan"), float("nan"), 1e-6) and not same(float("nan"), 1.0, 1e-6)
    assert (
        same(math.inf, math.inf, 1e-6)
        and not same(1e308, math.inf, 1e-6)
        and not same(-math.inf, math.inf, 1e-6)
    )
    assert (
        not same(10**400, 1.0, 1e-6)
        and not same(None, 0, 1e-6)
        and not same("3.5", 3.5, 1e-6)
        and not same({}, 0, 1e-6)
    )
    assert (
        same("Memory ", "memory", 1e-6)
        and not same("memory-bound", "memory", 1e-6)
        and not same(0.0, "memory", 1e-6)
    )
    assert same(1e-13, 0.0, 1e-6) and not same(1e-13, 1e-12, 1e-6)


def test_slice_has_the_other_ways_of_a_dispatching_function():
    names = slices(
        "from functools import singledispatch",
        "@singledispatch\ndef f(x):\n    return 0",
        "@f.register\ndef _(x: int):\n    return 1",
        "f.register(str)(lambda x: 3)",
        "@f.register(list)\ndef _(x):\n    return 2",
    )
    assert [names["f"](x) for x in (0.5, 1, [], "")] == [0, 1, 2, 3]


def _kind(value):
    return f"{type(value).__name__} of {np.size(value)}"


LIKE_A_LIST = [
    [1.0, 2.0],
    (1.0, 2.0),
    np.array([1.0, 2.0]),
    collections.deque([1.0, 2.0]),
    array.array("d", [1.0, 2.0]),
    memoryview(array.array("d", [1.0, 2.0])),
    range(1, 3),
    bytearray(b"\x01\x02"),
    [np.float64(1.0), np.array(2.0)],
    collections.UserList([1.0, 2.0]),
]
NOT_LIKE_A_LIST = [
    {1.0, 2.0},
    {1.0: 2.0},
    "12",
    b"\x01\x02",
    iter([1.0, 2.0]),
    (x for x in [1.0, 2.0]),
    [1.0, 2.0, 3.0],
    [[1.0, 2.0]],
    3.0,
    None,
]


@pytest.mark.parametrize("value", [*LIKE_A_LIST, *NOT_LIKE_A_LIST], ids=_kind)
def test_the_check_and_the_grader_have_one_rule_for_a_list(value):
    question = rl.FunctionQuestion(
        "of.mine",
        "Counts to two.",
        reference=lambda: [1.0, 2.0],
        tolerance=1e-9,
        inputs=lambda: [()],
        slips=[],
        hint="1 and 2",
    )
    expected = any(value is one for one in LIKE_A_LIST)
    graded = same(json.loads(json.dumps(json_value(value))), [1.0, 2.0], 1e-9)
    assert question.judge(lambda: value).right == graded == expected


def test_plain():
    import fractions

    assert json_value((1, np.int64(2), np.array([3.0, 4.0]), ...)) == [1, 2, [3.0, 4.0], None]
    assert json_value(fractions.Fraction(1, 2)) == 0.5 and json_value(2 + 0j) == 2.0
    assert json_value(2j) == {"odd": "complex"} and json_value({}) == {"odd": "dict"}


def test_marked_takes_a_question_or_a_function():
    draw = random.Random.random
    marked(lambda x: 2 * x, lambda x: x + x, edges=[(0,)], draw=lambda rng: [draw(rng)])
    with pytest.raises(AssertionError):
        marked(lambda x: 2 * x, lambda x: x * x, edges=[(2,), (0,)], draw=lambda rng: [draw(rng)])
    marked(
        lambda m, n, k: 2 * m * n * k,
        "intensity.x-product-flops",
        draw=lambda rng: [rng.randint(1, 99) for _ in range(3)],
    )


def test_nbgrader_takes_the_solutions_in(tmp_path):
    """A school's own way: nbgrader makes the assignment, then autogrades a good and an untouched
    copy."""
    from nbgrader.api import Gradebook

    shutil.copy(ROOT / "solutions/nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / FIRST, tmp_path / "source" / FIRST)

    def nbgrader(*arguments):
        tools = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["nbgrader", *arguments], cwd=tmp_path, env=tools, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    nbgrader("generate_assignment", FIRST)
    released = json.loads(
        (tmp_path / "release" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8")
    )
    assert [source(cell) for cell in released["cells"]] == [
        source(cell) for cell in read("exercises", FIRST)["cells"]
    ]
    good = {cell["id"]: cell["source"] for cell in read("solutions", FIRST)["cells"]}
    for student, answers in {"good": good, "untouched": {}}.items():
        book = json.loads(json.dumps(released))
        for cell in book["cells"]:
            if cell["id"] in answers and cell["metadata"].get("nbgrader", {}).get("solution"):
                cell["source"] = answers[cell["id"]]
        write(tmp_path / "submitted" / student / FIRST, **{FIRST: book})
    nbgrader("autograde", FIRST)
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        scores = {
            student: book.find_submission(FIRST, student) for student in ("good", "untouched")
        }
        assert {student: (found.score, found.max_score) for student, found in scores.items()} == {
            "good": (5, 9),
            "untouched": (0, 9),
        }
