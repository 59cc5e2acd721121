"""Records: their format, read and written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from measured_points import hangs_together, made

from roofline_lib import measuring
from roofline_lib.measuring import load, recorded, validate
from roofline_lib.measuring.record import Counts, Record, Traffic
from roofline_lib.measuring.roofs import cold_peaks, sustained_by

ROOT = Path(__file__).resolve().parents[1]


def as_stored(name):
    """The JSON of a record as it lies in its file."""
    path = ROOT / "roofline_lib" / "data" / "measured" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", recorded())
def test_a_record_follows_the_schema_and_its_summaries_follow_from_its_repeats(name):
    record = validate(load(name))
    assert record.finished
    assert record.sustained == sustained_by(record.points, record.chip.capacities)
    assert record.cold_peaks == cold_peaks(record.points)
    hangs_together(record)


@pytest.mark.parametrize("name", recorded())
def test_a_record_read_and_written_is_the_same_json(name, tmp_path):
    """As text, so that 1 and 1.0 differ; the order of the keys says nothing."""
    stored = json.dumps(as_stored(name), sort_keys=True)
    assert json.dumps(load(name).to_json(), sort_keys=True) == stored
    measuring.save(load(name), tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert json.dumps(written, sort_keys=True) == stored


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("machine"),
        lambda r: r.update(version=2),
        lambda r: r["points"][0].pop("flops"),
        lambda r: r["points"][0].update(precision="fp12"),
        lambda r: r["points"][0].update(flops=float("nan")),
        lambda r: r["points"][0]["seconds"].update(median=float("inf")),
        lambda r: r["points"][0]["repeats"].clear(),
        lambda r: r["points"][0].update(bytes_moved=-1.0),
        lambda r: r["points"][0].update(colour="red"),
        lambda r: r["points"][0].update(shape={"m": 3}),
    ],
)
def test_a_broken_record_is_refused_with_its_place(change):
    broken = as_stored("cpu_epyc_2_quick")
    change(broken)
    with pytest.raises(ValueError, match=r"^record, \$"):
        Record.from_json(broken)


def test_a_file_of_ones_own_is_checked_when_it_is_read(tmp_path):
    broken = as_stored("cpu_epyc_2_quick")
    del broken["machine"]["name"]
    (tmp_path / "mine.json").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^record, \$.machine: 'name' is a required property"):
        load(tmp_path / "mine.json")


def test_what_was_not_recorded_is_none_and_stays_out_of_the_file():
    """A driver that refuses a figure leaves it out; a clock is written even where it is not known,
    since the format asks for it."""
    record = load("cpu_epyc_2_quick")
    assert record.chip.power_limit is None and record.points[0].clock is None
    written = validate(replace(record, chip=replace(record.chip, clock=None))).to_json()
    assert "power_limit" not in written["machine"] and "clock" not in written["points"][0]
    assert written["machine"]["clock"] is None


def test_an_unknown_record_names_the_choices():
    with pytest.raises(KeyError, match="h200_a1"):
        load("h300")


def test_a_points_rates_are_its_work_over_its_median_time():
    point = made(2.0, flops=4e9, bytes_moved=6e9)
    assert (point.seconds, point.performance, point.bandwidth) == (2.0, 2e9, 3e9)


def test_the_median_of_counts_is_taken_counter_by_counter():
    repeats = (Counts(1.0, dram_read=2.0), Counts(9.0, dram_read=8.0), Counts(2.0, dram_read=3.0))
    row = Traffic("naive", "fp32", 8, None, "past L1", "strided", "f", repeats)
    assert row.median == Counts(2.0, dram_read=3.0)


def test_find_gives_the_one_point_and_refuses_none_and_several():
    record = load("h200_a1")
    point = record.find("gemm_n", "bf16", n=4096)
    assert (point.shape.m, point.precision) == (4096, "bf16")
    assert record.find("chain_order", label="A(Bc)").label == "A(Bc)"
    with pytest.raises(ValueError, match="gemm_n, bf16, n=4097 fit 0"):
        record.find("gemm_n", "bf16", n=4097)
    with pytest.raises(ValueError, match="gemm_n, n=4096 fit 5"):
        record.find("gemm_n", n=4096)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"a":', "is no JSON: it breaks at line 1, column 6"),
        (b"", "is no JSON: it is empty"),
        (b'{"a": "\xff\xfe', "is no JSON: it is not even text"),
        (b"[" * 10**5, "is no JSON: it is nested too deeply"),
        (b"[1]", "record, \\$: \\[1\\] is not of type 'object'"),
    ],
)
def test_a_file_that_is_no_record_is_one_clear_line(raw, said, tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=said) as raised:
        load(path)
    assert "Expecting" not in str(raised.value) and "codec" not in str(raised.value)
