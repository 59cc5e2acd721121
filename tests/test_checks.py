"""Judging answers: never an exception, never a wrong verdict, and each slip named where it
shows."""

import ast
import io
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib import questions
from roofline_lib.checks import (
    ChoiceQuestion,
    FunctionQuestion,
    NumberQuestion,
    Question,
    within,
)
from roofline_lib.checks.answers import meant
from roofline_lib.checks.slips import is_rounded, slip_texts
from roofline_lib.quantities import parse_quantity
from roofline_lib.questions import TOPICS, all_questions, check, questions_on

SLIPS = slip_texts()


@pytest.fixture(autouse=True)
def nothing_tried_yet():
    questions.TRIES.forget()


QUESTIONS = {question.id: question for question in all_questions()}
NUMBERS, CHOICES, FUNCTIONS = (
    [question for question in QUESTIONS.values() if isinstance(question, kind)]
    for kind in (NumberQuestion, ChoiceQuestion, FunctionQuestion)
)
PREFIXES = ["", "k", "K", "M", "G", "T", "P", "m", "u", "µ", "n", "Ki", "Mi", "Gi", "Ti"]
UNITS = {
    "FLOP": ["FLOP", "FLOPs"],
    "FLOP/s": ["FLOP/s", "FLOPS"],
    "byte": ["B", "byte", "bytes"],
    "byte/s": ["B/s", "byte/s"],
    "s": ["s", "sec"],
    "Hz": ["Hz"],
    "token/s": ["token/s", "tokens/s"],
    "W": ["W"],
}


def spelled(base):
    """Every way to write a unit with its prefix, and what it multiplies by."""
    units = [
        f"{prefix}{unit}"
        for unit in UNITS.get(base, [base])
        for prefix in (PREFIXES if base in UNITS else [""])
    ]
    return [(unit, parse_quantity(f"1 {unit}")[0]) for unit in units]


# never raises


class Hostile:
    """Every method of it raises."""

    how = RuntimeError

    def __getattribute__(self, name):
        raise object.__getattribute__(self, "how")(f"no {name}")

    def refuse(self, *_):
        raise object.__getattribute__(self, "how")("\ud800")

    __repr__ = __str__ = __float__ = __int__ = __index__ = __len__ = __iter__ = __eq__ = (
        __bool__
    ) = __array__ = __call__ = __hash__ = refuse


class Leaving(Hostile):
    how = SystemExit


class Mute(BaseException):
    def __str__(self):
        raise SystemExit


class Silent(Hostile):
    how = Mute


class Half(str):
    """A text whose own methods fail."""

    def strip(self, *_):
        raise RuntimeError("\ud800")

    __str__ = __repr__ = strip


ENDLESS = []
ENDLESS.append(ENDLESS)
ODD = [
    Hostile(),
    [Hostile()],
    Leaving(),
    [Leaving()],
    Silent(),
    Half("2"),
    ENDLESS,
    [ENDLESS],
    10**400,
    -(10**5000),
    b"2.147 GFLOP",
    True,
    np.True_,
    2 + 1j,
    np.complex64(2 + 1j),
    np.array([]),
    np.array([[1.0, 2.0]]),
    np.array(["x", None]),
    {},
    {1: 2},
    object,
    type,
    print,
    Leaving,
    ...,
    None,
    "",
    "  ",
    "\ud800",
    "9" * 9999,
    "GFLOP",
    float("nan"),
    float("inf"),
    "nan GB",
    rl.Work(1, 1),
    np.datetime64("2020"),
    range(3),
    iter([1]),
    NotImplemented,
    RecursionError("x"),
    memoryview(b"2"),
    lambda *_: Hostile(),
    lambda *_: Leaving(),
    lambda *_: exit(),
    lambda *_: 1 / 0,
    lambda: 1,
    lambda *_: ENDLESS,
    lambda *_: np.array([1, 2]),
]
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.complex_numbers(),
        st.binary(),
        st.text(st.characters()),
        st.fractions(),
        st.decimals(),
        st.from_regex(r"[-+]?[0-9.,_]+(e[0-9]+)? ?[kMGT]?(FLOP|B|s|%)?(/s)?"),
    ),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner), st.dictionaries(st.text(), inner)),
    max_leaves=5,
)


@pytest.mark.parametrize(
    "question", [NUMBERS[0], NUMBERS[-1], CHOICES[0], FUNCTIONS[0]], ids=lambda q: q.id
)
def test_odd_answers_are_wrong_and_nothing_worse(question):
    for i in range(len(ODD)):
        raised, fair = None, []
        try:
            fair = [check(question, ODD[i]), check(ODD[i], 3)]
        except BaseException as error:
            # the name only: pytest would ask the answer for its repr, and leave
            raised = type(error).__name__
        assert raised is None, f"answer {i} made the check raise {raised}"
        assert not any(verdict.right or verdict.slips for verdict in fair) and all(
            verdict.message for verdict in fair
        ), i


@given(st.sampled_from([*QUESTIONS.values()]), ANYTHING)
def test_never_raises(question, answer):
    for asked in (question, question.id):
        verdict = check(asked, answer)
        assert (
            verdict.right in (True, False) and set(verdict.slips) <= set(SLIPS) and verdict.message
        )


@given(ANYTHING)
def test_never_raises_for_a_question_that_is_none(question):
    assert not check(question, 3).right and not check(question).right


@pytest.mark.parametrize(
    "broken",
    [
        NumberQuestion("x", "?", lambda: 1 / 0),
        NumberQuestion("x", "?", lambda: 1.0, unit="Gflip"),
        NumberQuestion("x", "?", lambda: "no number"),
        NumberQuestion("x", "?", lambda: 1.0, slips=[("mac-is-flop", lambda: 1 / 0)]),
        FunctionQuestion("x", "?", lambda n: 1 / 0, inputs=lambda: [(1,)]),
        ChoiceQuestion("x", "?", lambda: "a", choices=("a", 2)),
    ],
)
def test_never_raises_for_a_broken_question(broken):
    for answer in (2.0, "2 GB", "b", lambda n: 2.0):
        assert not check(broken, answer).right


def test_a_slip_that_only_this_question_knows_is_named():
    question = NumberQuestion("x", "?", lambda: 1.0, slips=[("a teacher's own", lambda: 2.0)])
    assert check(question, 2.0).slips == ("a teacher's own",)


def test_only_a_key_press_interrupts():
    def stopped(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(FUNCTIONS[0], stopped)


def test_a_terminal_without_unicode_is_no_excuse(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert check(NumberQuestion("x", "?", lambda: 3e-6, unit="µs"), 3.0).right
    assert not check(NumberQuestion("x", "\ud800?", lambda: 3e-6, unit="µs")).answered


# never a wrong verdict


@given(st.sampled_from(NUMBERS), st.floats(-1, 1) | st.sampled_from([-1, 1]), st.data())
def test_right_means_inside_the_tolerance(question, where, data):
    reference, tolerance = float(question.reference()), question.tolerance
    # a shade inside: writing and reading rounds, at the 16th digit however small the tolerance
    value = reference * (1 + (tolerance - max(1e-9 * tolerance, 1e-15)) * where)
    scale, base = question.scale_and_base
    unit, factor = data.draw(st.sampled_from(spelled(base)))
    answers = [
        value / scale,
        np.float64(value / scale),
        np.array(value / scale),
        [value / scale],
        repr(value / scale),
        f"{value / factor!r} {unit}",
        f"{value / factor!r}{unit}",
    ]
    if tolerance == 0:
        answers = [reference / scale, repr(reference / scale)]
    for answer in answers:
        assert check(question, answer).right, answer
        assert check(question.id, answer).slips == ()


@given(st.sampled_from(NUMBERS), st.floats(1e-6, 20) | st.just(1e-6), st.booleans(), st.data())
def test_wrong_means_outside_the_tolerance(question, beyond, above, data):
    reference, scale = float(question.reference()), question.scale_and_base[0]
    off = question.tolerance * (1 + 1e-9) + beyond * max(question.tolerance, 1e-6)
    value = reference * (1 + off if above else 1 - off)
    unit, factor = data.draw(st.sampled_from(spelled(question.scale_and_base[1])))
    for answer in (value / scale, f"{value / factor!r} {unit}", -reference / scale):
        verdict = check(question, answer)
        assert not verdict.right and verdict.answered and verdict.message.count("not right") == 1


@pytest.mark.parametrize(
    "answer",
    [
        True,
        [True],
        np.array(True),
        1 + 0j,
        np.complex64(1),
        np.array([1 + 1j]),
        b"1",
        np.ones(2),
        {1},
    ],
)
def test_what_is_no_real_number_is_not_right_even_where_it_equals_one(answer):
    assert not check(NumberQuestion("x", "?", lambda: 1.0), answer).right


@pytest.mark.parametrize("question", CHOICES, ids=lambda q: q.id)
def test_choices(question):
    assert (
        question.reference() in question.choices
        and len(set(map(str.lower, question.choices))) == len(question.choices) >= 2
    )
    for letter, choice in zip("abcdefgh", question.choices, strict=False):
        for answer in (choice, f" {choice.upper()} ", letter, f"{letter}: {choice}"):
            assert check(question, answer).right == (choice == question.reference())
    for answer in ("neither of them", 17.5, [], True):
        assert (
            not check(question, answer).right
            and "is none of the choices" in check(question, answer).message
        )


@pytest.mark.parametrize("question", FUNCTIONS, ids=lambda q: q.id)
def test_functions(question):
    assert check(question, question.reference).right and len(question.inputs()) >= 2
    assert not check(question, lambda *arguments: "neither").right and not check(question, 3).right
    for untouched in (lambda *_: None, lambda *_: ..., ...):
        assert not check(question, untouched).answered
    for name, slip in question.slips:
        assert name in check(question, slip).slips


def test_a_slip_of_a_function_must_fit_every_input():
    question = FunctionQuestion(
        "x",
        "?",
        lambda n: 2.0 * n**3,
        inputs=lambda: [(2,), (10,)],
        slips=[("mac-is-flop", lambda n: n**3)],
    )
    assert check(question, lambda n: n**3).slips == ("mac-is-flop",)
    assert check(question, lambda n: 4 * n).slips == ()  # 8 at n = 2, by chance
    assert "raised ZeroDivisionError: division by zero" in check(question, lambda n: 1 / 0).message


CHANGE, BRACKETS, LANES_LEFT = (
    QUESTIONS[name].choices for name in ("intensity.too-good", "chains.best", "peaks.lanes")
)
MORE = QUESTIONS["tiling.smaller"].choices


@pytest.mark.parametrize(
    ("text", "choices", "meaning"),
    [
        ("bytes missing", CHANGE, "bytes are missing"),
        ("'Bytes are missing.'", CHANGE, "bytes are missing"),
        ("bytesaremissing", CHANGE, CHANGE[2]),
        ("poor", CHANGE, "poor kernel"),
        ("kernel", CHANGE, None),
        ("the", CHANGE, None),
        ("(c)", CHANGE, CHANGE[2]),
        ("d", CHANGE, None),
        ("bytes are not missing", CHANGE, None),
        ("excellent or poor kernel", CHANGE, None),
        ("", CHANGE, None),
        ("!", CHANGE, None),
        ("optimizer", QUESTIONS["training.swing"].choices, "the optimizer"),
        ("forward", QUESTIONS["training.swing"].choices, "the forward pass"),
        ("No, 3n^2 is the most reuse there is", MORE, MORE[1]),
        ("yes", MORE, MORE[0]),
        ("only", MORE, MORE[2]),
        ("reuse", MORE, None),
        ("not", LANES_LEFT, None),
        ("no", LANES_LEFT, None),
        ("25", LANES_LEFT, None),
        ("-256", LANES_LEFT, None),
        ("64", LANES_LEFT, "not 64"),
        ("( AB )(CD)", BRACKETS, "(AB)(CD)"),
        ("AB(CD)", BRACKETS, None),
        ("ABCD", BRACKETS, None),
        ("A(B)", BRACKETS, None),
        ("B", BRACKETS, BRACKETS[1]),
        ("L2", QUESTIONS["tiling.level"].choices, None),
        ("DRAM", QUESTIONS["tiling.level"].choices, "DRAM and L2"),
        ("A10", ("A10", "A100"), "A10"),
        ("1.5", ("15", "2"), None),
        ("A1", ("A10", "A100"), None),
        ("a100", ("A10", "A100"), "A100"),
        ("same", ("the same", "twice"), "the same"),
    ],
)
def test_a_choice_in_other_words_unless_two_fit(text, choices, meaning):
    assert meant(text, choices) == meaning
    verdict = check(ChoiceQuestion("x", "?", lambda: choices[0], choices=choices), text)
    assert verdict.right == (meaning == choices[0]) and (
        meaning is not None or not text or "or fits several" in verdict.message
    )


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("training.days", "26 days", True),
        ("training.days", "26 Day", True),
        ("training.days", "26 chips", False),
        ("training.days", "26 hours", False),
        ("decode.critical-batch", "137 sequences", True),
        ("decode.critical-batch", "137 tokens", False),
        ("roofline.faster-memory", "1.25 times", True),
        ("roofline.faster-memory", "5/4", True),
        ("intensity.add-fp16", "1/6", True),
        ("intensity.add-fp16", "1 / 6 FLOP/byte", True),
        ("intensity.add-fp16", "1/0", False),
        ("measured.waves", "75.8 percent", True),
        ("lies.l4", "60 SMs", True),
        ("lies.l4", "60 tiles", False),
        ("decode.critical-batch", "136.7", False),
    ],
)
def test_numbers_in_words(name, answer, right):
    assert check(name, answer).right == right


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("two rows instead of one", "two rows"),
        ("a layer of 8192 x 8192", "8192 wide"),
        ("fp32 numbers", "fp32"),
        ("a memory twice as fast", "faster memory"),
        ("a layer of 8192 x 8192, fp32 numbers", None),
        ("two rows, not one", None),
    ],
)
def test_a_choice_in_the_questions_own_words(text, choice):
    question = QUESTIONS["intensity.which-change"]
    assert meant(text, question.choices, question.prompt) == choice
    assert check(question, text).right == (choice == question.reference())


def test_letters_of_the_choices_are_told():
    assert check("chains.across").message.endswith("(a: yes / b: no; the letter will do)")


def test_a_choice_named_like_a_letter_is_the_choice():
    question = ChoiceQuestion("x", "Which?", lambda: "a", choices=("b", "a"))
    assert check(question, "a").right and not check(question, "b").right


# the questions themselves


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_question_is_sound(question):
    assert (
        re.fullmatch(r"[a-z]+\.[a-z0-9-]+", question.id)
        and question.prompt
        and question.hint
        and 0 <= getattr(question, "tolerance", 0) <= 0.05
    )
    assert {name for name, _ in question.slips} <= set(SLIPS)
    if question in NUMBERS:
        reference = float(question.reference())
        assert question.scale_and_base[0] > 0 and np.isfinite(reference) and reference != 0
        for name, slip in question.slips:
            assert abs(slip() / reference - 1) > question.tolerance + 0.004, (
                f"{name} is hardly apart from the answer"
            )
            assert name in check(question, slip() / question.scale_and_base[0]).slips
    elif question in CHOICES:
        assert all(
            slip() in question.choices and slip() != question.reference()
            for _, slip in question.slips
        )


def test_ids_are_unique_and_unknown_ones_get_the_nearest():
    assert len(QUESTIONS) == len(all_questions())
    message = check("intensity.gemm-flop", 3).message
    assert (
        "question 'intensity.gemm-flop' is not known; nearest: intensity.gemm-flops" in message
        and len(message) < 250
    )
    assert message.endswith(f"there are {len(QUESTIONS)}, {min(QUESTIONS)} to {max(QUESTIONS)}")
    assert "nearest: intensity.x-levels" in check("levels", 3).message


def test_no_typed_keys():
    """A reference is computed: no lambda of a question's reference is a bare number."""
    for path in Path(questions.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for keyword in getattr(call, "keywords", ()):
                body = getattr(keyword.value, "body", None)
                assert not (
                    keyword.arg == "reference"
                    and isinstance(body, ast.Constant)
                    and isinstance(body.value, int | float)
                ), path


def test_an_id_begins_with_its_topic_and_finding_it_loads_that_topic_only():
    for topic in TOPICS:
        assert {question.id.partition(".")[0] for question in questions_on(topic)} == {topic}
    program = (
        "import sys, roofline_lib as rl\n"
        "rl.check('tiling.useful', 3)\n"
        "loaded = [name for name in sys.modules if name.startswith('roofline_lib.questions.')]\n"
        "print(sorted(loaded))\n"
        "print('roofline_lib.measuring' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-2:] == [
        "['roofline_lib.questions.shared', 'roofline_lib.questions.tiling']",
        "False",
    ]


@pytest.fixture
def forgetful():
    """Topics are looked for anew, and again after the test."""
    questions_on.cache_clear()
    yield
    questions_on.cache_clear()


def test_where_there_are_no_references_it_says_so(monkeypatch, forgetful):
    for topic in TOPICS:
        monkeypatch.setitem(sys.modules, f"roofline_lib.questions.{topic}", None)
    assert "no references here" in check("intensity.gemm-flops", 3).message


def test_a_topic_that_wants_what_is_not_there_says_what(monkeypatch, forgetful):
    monkeypatch.setattr(questions, "import_module", lambda _: __import__("what_is_not_there"))
    assert "No module named 'what_is_not_there'" in check("intensity.gemm-flops", 3).message


# slips


def asks(reference, unit="", **slips):
    pairs = [(name.replace("_", "-"), slip) for name, slip in slips.items()]
    return NumberQuestion("made.here", "?", reference, unit=unit, slips=pairs)


A100, LLAMA = rl.machine("A100 40GB SXM"), rl.transformer("llama-3-8b")
PEAK = asks(
    lambda: rl.machine("H100 SXM").peak("bf16"),
    "TFLOP/s",
    sparse_peak=lambda: 2 * rl.machine("H100 SXM").peak("bf16"),
)
USED = asks(
    lambda: 100 * 400e12 / rl.machine("H100 SXM").peak("bf16"),
    "%",
    sparse_peak=lambda: 50 * 400e12 / rl.machine("H100 SXM").peak("bf16"),
)
RIDGE = asks(
    lambda: rl.machine("H100 SXM").ridge_point("bf16"),
    "FLOP/byte",
    wrong_chip=lambda: rl.machine("H100 PCIe").ridge_point("bf16"),
)
COUNT = asks(
    lambda: rl.gemm(4096, 4096, 4096).flops,
    "GFLOP",
    mac_is_flop=lambda: rl.gemm(4096, 4096, 4096).flops / 2,
)
LANES = asks(
    lambda: rl.peak_flops(108, 64, 1.41e9),
    "TFLOP/s",
    mac_is_flop=lambda: rl.peak_flops(108, 64, 1.41e9, 1),
)
SCORES = asks(
    lambda: rl.attention(1, 32, 32, 4096, 4096, 128, causal=True).flops,
    "GFLOP",
    causal_half=lambda: rl.attention(1, 32, 32, 4096, 4096, 128).flops,
    mac_is_flop=lambda: 2 * rl.attention(1, 32, 32, 4096, 4096, 128, causal=True).flops,
)
CACHE = asks(
    lambda: 4096 * LLAMA.kv_bytes_per_token(),
    "MB",
    heads_not_kv_heads=lambda: 4096 * LLAMA.kv_bytes_per_token() * LLAMA.heads / LLAMA.kv_heads,
    elements_not_bytes=lambda: 4096 * LLAMA.kv_bytes_per_token("int8"),
)
SQUARE = asks(
    lambda: rl.gemm(4096, 4096, 4096).bytes_moved,
    "MB",
    forgot_c=lambda: 2 / 3 * rl.gemm(4096, 4096, 4096).bytes_moved,
    read_c=lambda: rl.gemm(4096, 4096, 4096, beta=1).bytes_moved,
    elements_not_bytes=lambda: rl.gemm(4096, 4096, 4096, "int8").bytes_moved,
    wrong_width=lambda: rl.gemm(4096, 4096, 4096, "bf16").bytes_moved,
)
ADA = asks(
    lambda: rl.machine("RTX 4090").peak("fp16"),
    "TFLOP/s",
    accumulate_width=lambda: rl.machine("RTX 4090").peak("fp16", "fp16"),
)
BATCH = asks(
    lambda: float(rl.critical_batch(4096, 4096, "house chip", "bf16")),
    rule_for_exact=lambda: rl.machine("house chip").ridge_point("bf16"),
)
LEVEL = asks(
    lambda: rl.gemm(4096, 4096, 4096).intensity,
    "FLOP/byte",
    which_memory=lambda: rl.tiled_gemm(4096, 4096, 4096, 128).intensity,
)
REUSE = ChoiceQuestion(
    "made.here",
    "?",
    lambda: "best",
    choices=("best", "worst"),
    slips=[("no-reuse-is-best", lambda: "worst")],
)
BOOST = asks(
    lambda: 100 * 25.423e12 / rl.peak_flops(36, 128, 2.79e9),
    "%",
    ran_faster=lambda: 100 * 25.423e12 / rl.peak_flops(36, 128, 2.572e9),
)
TRIAD = asks(
    lambda: 1e9 / A100.bandwidth(), "ms", sustained_not_peak=lambda: 1e9 / (0.87 * A100.bandwidth())
)
# a slip that is right to within the tolerance
CLOSE = asks(lambda: 100.0, mac_is_flop=lambda: 100.9)
MOST = NumberQuestion("made.here", "?", lambda: 7.0, tolerance=0, rounded="down")
EDGES = asks(lambda: rl.tile_count(257, 257, 128), ragged_edge=lambda: (257 / 128) ** 2)


@pytest.mark.parametrize(
    ("question", "answer", "slips"),
    [
        (PEAK, "1979 TFLOP/s", "sparse-peak"),
        (PEAK, 989, ""),
        (USED, "20.2 %", "sparse-peak"),
        (USED, 40.4, ""),
        (RIDGE, 378, "wrong-chip"),
        (COUNT, "68.7 GFLOP", "mac-is-flop"),
        (COUNT, "68.7 GMAC", "mac-is-flop"),
        (COUNT, "137.4 GFLOP/s", "flops-rate"),
        (COUNT, "137.4 MFLOP", "giga-slip"),
        (COUNT, 137_439, "giga-slip"),
        (COUNT, "137,439 MFLOP", ""),
        (LANES, 9.75, "mac-is-flop"),
        (LANES, "19.5 GFLOP", "flops-rate"),
        (LANES, "19.5 TFLOPS", ""),
        (SCORES, "274.9 GFLOP", "causal-half mac-is-flop"),
        (SCORES, "137.5 GFLOP", ""),
        (CACHE, "2.147 GB", "heads-not-kv-heads"),
        (CACHE, 512, "gib-for-gb"),
        (CACHE, "512 MiB", ""),
        (CACHE, "0.5 GB", "gib-for-gb"),
        (CACHE, 524.3, "gib-for-gb"),
        (CACHE, "268.4 MB", "elements-not-bytes"),
        (CACHE, "0.537 MB", "giga-slip"),
        (CACHE, "537 GB/s", "?"),
        (COUNT, 70, "?"),
        (SQUARE, "136 MB", "?"),
        (CLOSE, 101.2, "?"),
        (QUESTIONS["intensity.add-fp16"], 0.17, "rounding"),
        (QUESTIONS["intensity.add-fp16"], 0.172, "?"),
        (QUESTIONS["lies.l4"], 58, "true-not-claimed"),
        (QUESTIONS["roofline.critical-size"], 459, "round-up"),
        (QUESTIONS["roofline.critical-size"], 458, "?"),
        (QUESTIONS["roofline.critical-size"], 461, "?"),
        (QUESTIONS["roofline.critical-size"], 459.2, "round-up"),
        (QUESTIONS["chains.strassen"], 18, "equal-not-fewer"),
        (MOST, 8, "round-down"),
        (MOST, 6, "?"),
        (QUESTIONS["measured.clock"], 989, "ran-slower"),
        (QUESTIONS["training.x-largest-model"], 75.05, "weights-only"),
        (QUESTIONS["training.x-largest-model"], 37.53, "forgot-optimizer"),
        (QUESTIONS["training.days"], 10.4, "forgot-utilisation"),
        (QUESTIONS["decode.ffn-time"], 220, "wrong-peak"),
        (QUESTIONS["decode.critical-batch"], 240, "wrong-width"),
        (QUESTIONS["start.bytes"], 32, "bits-for-bytes"),
        (QUESTIONS["intensity.linear-layer"], 157.5, "wrong-width mac-is-flop"),
        (CLOSE, 100.9, ""),
        (SQUARE, "134.2 MB", "forgot-c"),
        (SQUARE, "268.4 MB", "read-c"),
        (SQUARE, "50.3 MB", "elements-not-bytes"),
        (SQUARE, "100.7 MB", "wrong-width"),
        (SQUARE, "192 MB", "gib-for-gb"),
        (SQUARE, "192 MiB", ""),
        (SQUARE, "201.3 MiB", "gib-for-gb"),
        (ADA, "330.3 TFLOP/s", "accumulate-width"),
        (BATCH, 150, "rule-for-exact"),
        (BATCH, "162", ""),
        (LEVEL, 31.5, "which-memory"),
        (REUSE, "worst", "no-reuse-is-best"),
        (BOOST, "107.3 %", "ran-faster"),
        (BOOST, "98.9%", ""),
        (TRIAD, "739 µs", "sustained-not-peak"),
        (TRIAD, "643 us", ""),
        (EDGES, 4.03, "ragged-edge"),
        (EDGES, 9, ""),
        (USED, 0.404, "fraction-for-percent"),
        (USED, "0.404 %", "fraction-for-percent"),
        (USED, "40.4 percent", ""),
        (BATCH, 1.62, "?"),
        (COUNT, rl.gemm(4096, 4096, 4096).flops, "raw-number"),
        (COUNT, 1.374e11, "raw-number"),
        (COUNT, "1.374e11", "raw-number"),
        (COUNT, "1.374e11 FLOP", ""),
        (COUNT, "137.4e9 GFLOP", "?"),
        (TRIAD, 0.000643, "raw-number"),
        (LEVEL, "683 byte/FLOP", "upside-down"),
        (LEVEL, "0.001465 B/FLOP", "upside-down"),
        (LEVEL, 0.001465, "upside-down"),
        (SQUARE, "201.3 Mb", "bits-for-bytes"),
        (SQUARE, "1610.6 Mb", ""),
        (SQUARE, 1610.6, "?"),
        (SQUARE, "25.2 MB", "?"),
        (QUESTIONS["roofline.ridge"], 277.8, "mac-is-flop"),
        (QUESTIONS["roofline.ridge"], 69.4, "mac-is-flop"),
        (QUESTIONS["training.six-n-d"], "90 EFLOP", "forward-only"),
        (QUESTIONS["training.days"], 8.68, "forward-only"),
        (
            QUESTIONS["training.x-cluster"],
            QUESTIONS["training.x-cluster"].reference() / 3,
            "forward-only",
        ),
        (QUESTIONS["tiling.useful"], 91.2, "forgot-waves"),
        (QUESTIONS["decode.critical-batch"], 120.1, "rule-for-exact"),
        (QUESTIONS["decode.critical-batch"], 136.09, "round-up"),
        (QUESTIONS["decode.critical-batch"], 137, ""),
    ],
)
def test_each_slip_is_named_and_no_other(question, answer, slips):
    verdict = check(question, answer)
    assert verdict.right == (slips == "")  # "?": wrong, and no slip's own value
    assert verdict.slips == tuple(slips.strip("?").split())
    for name in verdict.slips:
        assert f"Looks like {name}: {SLIPS[name]}" in verdict.message


def test_a_slip_that_is_right_on_some_inputs_is_named():
    """Rounding down where up is asked for is right on whole numbers and where nothing will do."""
    question = QUESTIONS["intensity.x-rows-for"]

    def floored(target, n, k, s):
        rows = target * s * k * n / (2 * n * k - target * s * (n + k))
        return float(math.floor(rows)) if rows > 0 else math.inf

    inputs = [*question.inputs(), (32, 128, 128, 2), (100, 4096, 512, 2)]
    assert [floored(*one) == question.reference(*one) for one in inputs].count(True) == 2
    assert question.slips_that_give([(one, floored(*one)) for one in inputs]) == ["round-up"]
    # right on most, so no slip of the formula
    wrong = [(one, question.reference(*one)) for one in inputs]
    wrong[0] = inputs[0], floored(*inputs[0])
    assert question.slips_that_give(wrong) == []


def test_rounding_leaves_a_digit_or_two():
    assert is_rounded(0.2, 1 / 6, "") and is_rounded(0.17, 1 / 6, "")
    assert not is_rounded(0.167, 1 / 6, "")


def test_every_slip_can_show():
    made = [q for name, q in globals().items() if isinstance(q, Question)]
    of_units = {
        "flops-rate",
        "giga-slip",
        "gib-for-gb",
        "raw-number",
        "upside-down",
        "bits-for-bytes",
        "fraction-for-percent",
        "rounding",
        "round-up",
        "round-down",
    }
    assert (
        set(SLIPS) == {name for q in [*made, *QUESTIONS.values()] for name, _ in q.slips} | of_units
    )


# what the learner reads


def test_messages(capsys):
    assert check("intensity.gemm-flops").message.startswith(
        "intensity.gemm-flops: not answered yet. Two 1024 x 1024 fp32"
    )
    verdict = check("intensity.gemm-flops", "1.074 GFLOP")
    printed = capsys.readouterr().out
    assert (
        printed.split()[-len(verdict.message.split()) :] == verdict.message.split()
        and max(map(len, printed.splitlines())) <= 88
    )
    # a long line goes on further in
    assert "  Looks like mac-is-flop: " in printed and "\n    " in printed
    lines = verdict.message.splitlines()
    assert lines[0] == "intensity.gemm-flops: not right: you say 1.074 GFLOP." and lines[
        2
    ].startswith("  Looks like mac-is-flop: ")
    # the question first, the hint after the slip, the value not yet
    assert lines[1].startswith("  Asked: Two 1024 x 1024 fp32") and lines[1].endswith(" (in GFLOP)")
    assert lines[3].startswith("  Hint: ") and "2.147" not in verdict.message
    assert check("intensity.gemm-flops", "2.147 GFLOP").message.splitlines() == [
        "intensity.gemm-flops: right. You say 2.147 GFLOP; computed: 2.147 GFLOP.",
        lines[1],
    ]
    assert "you gave '2 GB', asked for is GFLOP" in check("intensity.gemm-flops", "2 GB").message
    assert "[1, 2] is not one number" in check("intensity.gemm-flops", [1, 2]).message
    assert (
        "asked for is a plain number" in check(BATCH, "162 GB").message
        and check(BATCH, "16,200 %").right
    )
    assert check(asks(lambda: 2e12, "TB/s"), "16 Tbit/s").right and within(2e12, 2e12, 0)


def told(question, *answers, **keywords):
    """For each answer in turn whether the value was told."""
    return ["Computed: " in check(question, answer, **keywords).message for answer in answers]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("intensity.gemm-flops", 1.074, "3 GFLOP"),
        ("tiling.level", "DRAM and L2", "shared memory and registers"),
        ("tiling.function", lambda m, n, k, b: 1.0, lambda m, n, k, b: 2.0),
    ],
)
def test_the_value_is_told_with_the_second_different_wrong_answer(name, one, other):
    assert told(name, one, one, ..., "no answer", one) == [False] * 5
    assert told(name, other, one) == [True, True]
    questions.TRIES.forget()
    assert told(name, one, show=True) == told(name, ..., show=True) == [True]


def test_the_same_answer_in_another_unit_is_no_second_try():
    assert told("intensity.gemm-flops", 1.074, "1074 MFLOP", "1.074e9 FLOP") == [False] * 3
    # another question counts for itself
    assert told("intensity.gemm-bytes", 1.0) == [False]


def test_each_verdict_shows_the_question_and_the_unit_that_it_asks_for():
    panels = QUESTIONS["tiling.x-panels"]
    for answer in (..., 96, 98.3, "12 s", "no number"):
        assert panels.prompt in check(panels, answer).message
    assert "You say 96 KiB; computed: 96 KiB." in check(panels, 96).message
    assert "you say 98.3 KiB." in check(panels, 98.3).message
    assert "you say 0.1 MB." in check(panels, "0.1 MB").message


def test_a_function_that_gives_nothing_back_is_told_so():
    def forgetful(m, n, k, b):
        m * n * k / b

    def silent(m, n, k, b):
        """Bytes."""

    verdict = check("tiling.function", forgetful)
    assert verdict.answered and "your function gave nothing back" in verdict.message
    assert "`return`" in verdict.message and "Computed" not in verdict.message
    assert not check("tiling.function", silent).answered


def test_numbers_of_functions_read_well():
    question = FunctionQuestion(
        "x", "?", lambda n, tiles: [42292.0, 64.5, n], inputs=lambda: [(2e13, [128, 1.5e-3])]
    )
    message = check(question, lambda n, tiles: [42291.0, 64, 1], show=True).message
    assert "for (2e13, [128, 0.0015]) you say [42,291; 64; 1]." in message
    assert "Computed: [42,292; 64.5; 2e13] for" in message


@pytest.mark.parametrize("answer", ["12,5", "12,5 GFLOP", (12, 5)])
def test_a_decimal_comma_is_asked_about(answer):
    assert "if you mean 12.5, write 12.5" in check("intensity.gemm-flops", answer).message


def test_a_comma_before_three_digits_is_asked_about_where_they_may_be_decimals():
    said = check("intensity.gemm-flops", "2,147").message
    assert "'2,147' is read as 2,147 GFLOP; write a decimal point" in said
    assert "giga" not in said and check("intensity.gemm-flops", "2.147").right


def test_two_arguments_are_a_decimal_comma_too():
    assert "if you mean 2.14, write 2.14" in check("intensity.gemm-flops", 2, 14).message
    assert check("intensity.gemm-bytes", "12,582,912 B").right


@pytest.mark.parametrize("question", NUMBERS, ids=lambda question: question.id)
def test_a_slip_of_the_questions_own_is_named_and_none_that_goes_with_its_unit(question):
    scale, _ = question.scale_and_base
    for name, slip in question.slips:
        value = float(slip())
        if within(value, question.reference(), question.tolerance):
            continue
        verdict = check(question, value / scale)
        same = {other for other, its in question.slips if within(value, float(its()), 0.004)}
        assert name in verdict.slips and set(verdict.slips) <= same


@pytest.mark.parametrize("question", NUMBERS, ids=lambda question: question.id)
def test_a_slip_is_named_only_where_its_own_arithmetic_gives_the_value(question):
    """Near misses and the factor 8 are no slip by themselves."""
    scale, _ = question.scale_and_base
    reference = float(question.reference()) / scale
    own = [float(slip()) / scale for _, slip in question.slips]
    for factor in (1.0317, 0.9683, 1 / 1.0171, 8, 1 / 8):
        if not any(within(factor * reference, value, 0.02) for value in own):
            assert set(check(question, factor * reference).slips) <= {"round-up", "round-down"}


@pytest.mark.parametrize(
    ("value", "right"),
    [(math.inf, True), (0.0, False), (-7, False), (1e300, False), (-math.inf, False)],
)
def test_only_infinity_is_infinite(value, right):
    question = rl.FunctionQuestion(
        "t.inf", "Where does it end?", lambda n: math.inf, inputs=lambda: [(1,), (2,)]
    )
    assert rl.check(question, lambda n: value).right is right


@pytest.mark.parametrize(
    ("made", "right"),
    [
        (lambda n: np.array([2.0 * n]), True),
        (lambda n: np.full((1, 1), 2 * n), True),
        (lambda n: [2 * n], True),
        (lambda n: str(2 * n), False),
        (lambda n: [2 * n, 2 * n], False),
        (lambda n: 2 * n + 1j, False),
    ],
)
def test_a_functions_answer_is_one_number(made, right):
    question = rl.FunctionQuestion(
        "t.one", "Twice n?", lambda n: 2 * n, inputs=lambda: [(1,), (2,)]
    )
    assert rl.check(question, made).right is right
