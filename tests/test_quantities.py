"""Numbers in and out of words."""

import math
import os
import subprocess
import sys

import pytest
from harness.repository import ROOT
from hypothesis import given
from hypothesis import strategies as st

from roofline_lib.arguments import UnknownName, number, unknown
from roofline_lib.quantities import parse_quantity, plural, quantity, significant

PREFIXED = ("byte", "byte/s", "FLOP", "FLOP/s", "s", "Hz", "token/s", "W")


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (4.362e9, "byte", "4.36 GB"),
        (67.1e6, "byte", "67.1 MB"),
        (31.5, "FLOP/byte", "31.5 FLOP/byte"),
        (2.15e-3, "s", "2.15 ms"),
        (20e12, "FLOP/s", "20 TFLOP/s"),
        (1555e9, "byte/s", "1.56 TB/s"),
        (999.6e6, "byte", "1 GB"),
        (999.4e6, "byte", "999 MB"),
        (16.8e-6, "s", "16.8 µs"),
        (0.0, "byte", "0 B"),
        (-3.2e9, "byte", "-3.2 GB"),
        (3e-14, "s", "0.03 ps"),
        (2e27, "FLOP", "2,000 YFLOP"),
        (2080, "", "2,080"),
        (26703, "", "26,700"),
        (1.234e9, "elements", "1.23e9 elements"),
        (2.5e-7, "FLOP/byte", "2.50e-7 FLOP/byte"),
        (50.5, "%", "50.5%"),
        (0.24999, "FLOP/byte", "0.25 FLOP/byte"),
        (math.inf, "FLOP/byte", "inf FLOP/byte"),
        (math.nan, "", "nan"),
    ],
)
def test_words(value, unit, words):
    assert quantity(value, unit) == words


def test_digits():
    assert [quantity(2147483648, "FLOP", digits) for digits in (1, 3, 4, 7)] == [
        "2 GFLOP",
        "2.15 GFLOP",
        "2.147 GFLOP",
        "2.147484 GFLOP",
    ]


@given(st.floats(1e-12, 1e26), st.sampled_from(PREFIXED), st.sampled_from([1, -1]))
def test_what_is_written_can_be_read(value, unit, sign):
    read, base, _ = parse_quantity(quantity(sign * value, unit, digits=12))
    assert base == unit and read == pytest.approx(sign * value, rel=1e-11)
    short = quantity(value, unit)
    assert parse_quantity(short)[0] == pytest.approx(value, rel=5.1e-3)
    number = float(short.split()[0].replace(",", ""))
    assert 1 <= number < 1000 or value >= 999.5e24


@given(st.floats(1e-300, 1e300))
def test_significant_digits(value):
    for digits in (1, 2, 3, 5):
        assert float(significant(value, digits).replace(",", "")) == pytest.approx(
            value, rel=0.51 * 10.0 ** (1 - digits)
        )


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("2.147 GFLOP", 2.147e9, "FLOP"),
        ("1,000 MiB", 1000 * 2**20, "byte"),
        ("1_000_000 B", 1e6, "byte"),
        ("16.8 us", 16.8e-6, "s"),
        ("16.8 µs", 16.8e-6, "s"),
        ("16.8μs", 16.8e-6, "s"),
        (" -.5e3 ms ", -0.5, "s"),
        ("2.147e9", 2.147e9, ""),
        ("64x", 64, ""),
        ("50 %", 50, "%"),
        ("1.5 TB/s", 1.5e12, "byte/s"),
        ("12 kB", 12e3, "byte"),
        ("12 KB", 12e3, "byte"),
        ("12 KiB", 12 * 1024, "byte"),
        ("2 GiB", 2**31, "byte"),
        ("2 TiB", 2**41, "byte"),
        ("3 PiB", 3 * 2**50, "byte"),
        ("1.07 GMAC", 1.07e9, "MAC"),
        ("20 TFLOPS", 20e12, "FLOP/s"),
        ("20 TFLOPs", 20e12, "FLOP"),
        ("10 FLOPs/byte", 10, "FLOP/byte"),
        ("143 tokens/s", 143, "token/s"),
        ("1.41 GHz", 1.41e9, "Hz"),
        ("3.", 3, ""),
        ("12,345.5 MB", 12345.5e6, "byte"),
        ("16 Tb/s", 16e12, "bit/s"),
        ("8 Mb", 8e6, "bit"),
        ("6 byte/FLOP", 6, "byte/FLOP"),
        ("2 times", 2, ""),
        ("91.2 percent", 91.2, "%"),
        ("1/6", 1 / 6, ""),
        ("1 / 4 GB", 0.25e9, "byte"),
        ("1,000/3", 1000 / 3, ""),
    ],
)
def test_reading(text, value, unit):
    read, base, _ = parse_quantity(text)
    assert read == pytest.approx(value, rel=1e-15) and base == unit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GFLOP",
        "1.2.3",
        "2,14 GFLOP",
        "1,2345",
        "2 Gflip",
        "nan",
        "inf",
        "1e",
        "1 e3",
        "--1",
        "2 GFLOP/byte",
        "0x10",
        "1 MMB",
        "5 G",
        "1,000,00",
        "1/0",
        "1/2/3",
        "1/",
        "9" * 50_000 + "\n?\n?",
        "1" * 50_000 + ",\n",
    ],
)
def test_refusing(text):
    with pytest.raises(ValueError, match="is no number with a unit|unit '[^,.]*' is not known"):
        parse_quantity(text)


def test_unknown_names():
    few, many = (
        unknown("colour", "rde", ["red", "blue"]),
        unknown("chip", "a101 z", [f"A{i} X" for i in range(100, 120)]),
    )
    assert (
        isinstance(few, KeyError) and isinstance(few, ValueError) and isinstance(few, UnknownName)
    )
    assert "; nearest: green sea; choose" in str(unknown("colour", "SEA", ["red", "green sea"]))
    assert "nearest" not in str(unknown("colour", "", ["red", "blue"])) and "nearest" not in str(
        unknown("level", 3, ["L3x"])
    )
    assert str(few) == "colour 'rde' is not known; choose one of red, blue"
    assert "; nearest: A101 X; choose" in str(many) and str(many).endswith("A119 X")
    assert len(str(unknown("colour", "x" * 10_000, ["red"]))) < 200
    # seven letters of nine in common are another word
    assert "nearest" not in str(unknown("operator", "retention", ["attention"]))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, [1.0, -math.inf]])
def test_a_number_without_limits_is_finite_all_the_same(value):
    with pytest.raises(ValueError, match=r"change must be a number \(byte\); got"):
        number("change", value, "byte")
    assert number("change", -3, "byte") == -3


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("utf-8", "33.4 µs"),
        ("cp1252", "33.4 µs"),
        ("cp437", "33.4 µs"),
        ("latin-1", "33.4 µs"),
        ("cp932", "33.4 us"),
        ("gbk", "33.4 us"),
        ("ascii", "33.4 us"),
    ],
)
def test_a_bound_prints_on_any_console(encoding, words):
    """Some consoles have no µ; the text read back is the same quantity."""
    work = "rl.Work(1, 2e12 * 33.4e-6)"
    code = f"import roofline_lib as rl; print(rl.bound({work}, 'house chip', 'bf16'))"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    ).stdout.decode(encoding)
    assert words in printed and parse_quantity(words)[0] == pytest.approx(33.4e-6)


def test_plurals():
    counts = [plural(count, "lane") for count in (0, 1, 2, 1024)]
    assert counts == ["0 lanes", "1 lane", "2 lanes", "1,024 lanes"]
