"""Adding things is cheap: the table in CONTRIBUTING says how many files each addition touches, and
here each is made on a copy of the repository, where the tests that it could break then run."""

import json
import os
import re
import shutil
import sys

import nbformat
import pytest
from harness.repository import ROOT, run
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOMS = ["roofline_lib", "tests", "tools", "notebooks", "solutions", "exercises", "docs"]


class Copy:
    """A copy of the repository that remembers which files were written by hand."""

    def __init__(self, root):
        self.root, self.by_hand = root, set()
        ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "submissions")
        for room in ROOMS:
            shutil.copytree(ROOT / room, root / room, ignore=ignored)
        for path in [*ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
            shutil.copy(path, root)

    def write(self, name, text):
        self.by_hand.add(name)
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def append(self, name, text):
        self.write(name, (self.root / name).read_text(encoding="utf-8") + text)

    def replace(self, name, old, new):
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r}"
        self.write(name, text.replace(old, new, 1))

    def add_cells(self, name, *cells):
        """Cells before the last one of a notebook."""
        book = nbformat.read(self.root / name, as_version=4)
        book.cells[-1:-1] = cells
        self.write(name, nbformat.writes(book) + "\n")

    def python(self, *arguments):
        """Run Python in the copy, with the copy's library."""
        done = run(
            sys.executable,
            *arguments,
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root)},
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout

    def test(self, *what):
        self.python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *what)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path / "copy")


def stated(addition):
    """How many files CONTRIBUTING says that this addition touches."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return int(re.search(rf"^\| {addition} \| (\d+) \|", text, re.M)[1])


def test_a_chip(copy):
    copy.append(
        "roofline_lib/data/machines.toml",
        """
["Toy 1"]
kind = "GPU"
units = 10
unit_name = "SM"
clock = 1e9
peaks = [
  {precision = "fp32", flops = 2.56e12, accumulate = "fp32", dense = true, unit_kind = "CUDA core",\
 flop_per_clock_per_unit = 256, source = "its sheet", status = "V"},
]
memory = [
  {level = "DRAM", bandwidth = 1e12, capacity = 17179869184, clock = 1e9, bus_bits = 4000,\
 transfers_per_clock = 2, capacity_source = "its sheet", source = "its sheet", status = "V"},
]
""",
    )
    copy.test("tests/test_catalogue.py", "tests/test_machines.py", "-k", "Toy or not [")
    assert len(copy.by_hand) == stated("a chip")


def test_a_model(copy):
    copy.append(
        "roofline_lib/data/transformers.toml",
        """
["toy-1"]
layers = 2
d_model = 64
heads = 4
kv_heads = 2
head_dim = 16
d_ff = 128
vocab = 100
parameters = 86592
source = "counted here"
""",
    )
    given = copy.python(
        "-c", "import roofline_lib as rl; print(rl.transformer('toy-1').parameters)"
    )
    copy.replace(
        "roofline_lib/data/transformers.toml", "parameters = 86592", f"parameters = {given}"
    )
    copy.test("tests/test_catalogue.py", "-k", "toy or presets or counts")
    assert len(copy.by_hand) == stated("a model")


def test_a_precision(copy):
    copy.replace(
        "roofline_lib/precisions.py", '    "fp8": 1.0,\n', '    "fp8": 1.0,\n    "int2": 0.25,\n'
    )
    copy.append(
        "tests/test_precisions.py",
        "\n\ndef test_four_of_two_bits_fill_a_byte():\n"
        '    assert 4 * rl.bytes_per_element("int2") == 1\n',
    )
    copy.test("tests/test_precisions.py", "tests/test_operators.py", "-k", "not million")
    assert len(copy.by_hand) == stated("a precision")


def test_an_operator(copy):
    copy.append(
        "roofline_lib/operators.py",
        '\n\ndef ger(m: Number, n: Number, precision: str = "fp32") -> Work:\n'
        '    """A[m, n] += x[m] y[n]: 2mn FLOP; A, x and y in, A out."""\n'
        '    m, n = size("m", m), size("n", n)\n'
        "    return Work(2 * m * n, bytes_per_element(precision) * (2 * m * n + m + n))\n",
    )
    copy.replace("roofline_lib/__init__.py", "    gemv,\n", "    gemv,\n    ger,\n")
    copy.replace("roofline_lib/__init__.py", '    "gemv",\n', '    "gemv",\n    "ger",\n')
    copy.append(
        "tests/test_operators.py",
        "\n\ndef test_ger_is_a_product_with_one_column():\n"
        "    assert rl.ger(7, 5).flops == rl.gemm(7, 5, 1).flops\n",
    )
    arguments = 'dict(m=96, n=80, precision="bf16"), dict(m=ELEMENTS, n=ELEMENTS, precision="name")'
    copy.replace(
        "tests/test_operators.py", "BORDER = [\n", f"BORDER = [\n    (rl.ger, {arguments}),\n"
    )
    rooms = ("tests/test_operators.py", "tests/test_border.py", "tests/test_face.py")
    copy.test(*rooms, "-k", "ger or every_public or dir or face or late")
    assert len(copy.by_hand) == stated("an operator")


EXPLORER = """
from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Number
from roofline_lib.explorers.scenes import Scene
from roofline_lib.explorers.stage import Axes


class DotExplorer(Explorer):
    def __init__(self, n: int = 8):
        super().__init__(Number("n", n, 1, 64, "elements"))

    @staticmethod
    def scene(n):
        axes = Axes((1, 64), (1, 128), "n", "FLOP", (76, 14, 500, 300))
        return Scene((axes,), (), (f"{2 * n} FLOP.",), "An empty picture.")
"""


def test_an_explorer(copy):
    copy.write("roofline_lib/explorers/dot.py", EXPLORER.lstrip())
    face = "roofline_lib/__init__.py"
    table = '    "explorers.gemm": ('
    copy.replace(face, table, '    "explorers.dot": ("DotExplorer",),\n' + table)
    told = "    from roofline_lib.explorers.gemm import"
    copy.replace(face, told, "    from roofline_lib.explorers.dot import DotExplorer\n" + told)
    names = '    "FunctionQuestion",\n    "GemmExplorer",\n'
    copy.replace(face, names, '    "DotExplorer",\n' + names)
    copy.write(
        "tests/test_explorer_dot.py",
        "import roofline_lib as rl\n\n\n"
        "def test_two_flop_an_element():\n"
        '    assert rl.DotExplorer(n=7).readout == "14 FLOP."\n',
    )
    copy.test(
        "tests/test_explorer_dot.py", "tests/test_face.py", "-k", "flop or dir or face or late"
    )
    copy.test("tests/test_explorers.py", "-k", "DotExplorer or listed or list_of")
    assert len(copy.by_hand) == stated("an explorer")


QUESTION = """
    NumberQuestion(
        "tiling.new",
        "How many FLOP has a product of two 8 x 8 matrices?",
        lambda: rl.gemm(8, 8, 8).flops,
        unit="FLOP",
        slips=[
            ("mac-is-flop", lambda: rl.gemm(8, 8, 8).flops / 2),
            ("elements-not-bytes", lambda: 3 * 8 * 8),
        ],
        hint="2 m n k",
    ),
"""


def test_a_practice_question(copy):
    copy.replace("roofline_lib/questions/tiling.py", "QUESTIONS = [\n", "QUESTIONS = [" + QUESTION)
    copy.add_cells(
        "notebooks/03_tiling.ipynb", new_code_cell('rl.check("tiling.new", ...)', id="quiz-new")
    )
    copy.test("tests/test_checks.py", "-k", "tiling.new or unique or typed or loads")
    copy.test("tests/test_wrong_values.py", "-k", "tiling.new")
    assert len(copy.by_hand) == stated("a practice question")


FUNCTION = """
    FunctionQuestion(
        "tiling.x-new",
        "A function: the FLOP of a product of two n x n matrices.",
        reference=lambda n: rl.gemm(n, n, n).flops,
        tolerance=1e-9,
        inputs=lambda: [(8,), (96,)],
        slips=[
            ("mac-is-flop", lambda n: n**3),
            ("elements-not-bytes", lambda n: 3 * n * n),
        ],
        hint="2 m n k",
    ),
"""
ANSWER = """def flop_of_a_cube(n):
    ### BEGIN SOLUTION
    return 2 * n**3
    ### END SOLUTION"""
HIDDEN_TESTS = """rl.check("tiling.x-new", flop_of_a_cube)
### BEGIN HIDDEN TESTS
from roofline_lib.grading import marked

marked(
    flop_of_a_cube,
    "tiling.x-new",
    edges=[(1,), (2,)],
    draw=lambda rng: [rng.randint(3, 900)],
    without=["operators", "model"],
)
### END HIDDEN TESTS"""


def test_a_marked_exercise(copy):
    copy.replace("roofline_lib/questions/tiling.py", "QUESTIONS = [\n", "QUESTIONS = [" + FUNCTION)
    copy.add_cells(
        "solutions/03_tiling/03_tiling.ipynb",
        new_markdown_cell("## Marked: a cube", id="flop_of_a_cube_asks"),
        new_code_cell(ANSWER, id="flop_of_a_cube"),
        new_code_cell(HIDDEN_TESTS, id="test_flop_of_a_cube"),
    )
    table = "WRONG_ANSWERS = {\n"
    row = '    "flop_of_a_cube": [lambda n: 2 * n**2],\n'
    copy.replace("tests/exercises/tiling.py", table, table + row)
    copy.python("tools/make_exercises.py")
    copy.test("tests/test_checks.py", "-k", "tiling.x-new or unique or typed")
    copy.test("tests/test_exercises.py", "-k", "03_tiling and slips or asked_for")
    copy.test("tests/test_grading_exercises.py", "-k", "tool_makes or 03_tiling and not mark")
    assert len(copy.by_hand) == stated("a marked exercise")


def write_lesson(copy):
    """A lesson between the last two: notebook, solution, and its entry in the list."""
    metadata = nbformat.read(ROOT / "notebooks" / "03_tiling.ipynb", as_version=4).metadata
    kept = {key: metadata[key] for key in ("kernelspec", "language_info")}
    cells = [
        new_markdown_cell("# New\n\n**Why?**\n\n5 minutes · next", id="title"),
        new_markdown_cell("Practise: do. Next: [nothing](00_start_here.ipynb)", id="recap"),
    ]
    count = len(list((ROOT / "notebooks").glob("*.ipynb")))
    stem = f"{count:02}_new"  # make lessons gives it the number of its place
    book = new_notebook(cells=cells, metadata=kept)
    copy.write(f"notebooks/{stem}.ipynb", nbformat.writes(book) + "\n")
    sheet = new_notebook(
        cells=[new_markdown_cell(f"# Exercises {count} · New", id="title")], metadata=kept
    )
    copy.write(f"solutions/{stem}/{stem}.ipynb", json.dumps(sheet, indent=1) + "\n")
    last = '\n[[lesson]]\nname = "numbers_that_lie"'
    entry = '\n[[lesson]]\nname = "new"\ntitle = "New"\nquestion = "Why?"\nminutes = 5\n'
    copy.replace("roofline_lib/course/lessons.toml", last, entry + last)


def test_a_lesson(copy):
    """One without questions; they stand in a module of roofline_lib/questions."""
    write_lesson(copy)
    copy.python("tools/number_lessons.py")
    copy.python("tools/make_exercises.py")
    copy.test("tests/test_course.py", "-k", "listed or exercises_belong or places or name")
    copy.test("tests/test_notebooks.py", "-k", "linked or glossary or minutes")
    assert len(copy.by_hand) + 1 == stated("a lesson")
