"""What a browser's page cannot do: it says so in one line, shows what is recorded, and refuses what
is refused anywhere."""

import sys

import matplotlib.pyplot as plt
import pytest

import roofline_lib.__main__
from roofline_lib import own_curve
from roofline_lib.measuring import load, measure

RECORDED = "cpu_epyc_2_quick"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr(sys, "platform", "emscripten")


def test_measuring_gives_a_record_and_says_that_it_is_one(page, capsys):
    assert measure("cpu", quick=True) == load(RECORDED)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and RECORDED in said
    assert load(RECORDED).chip.name in said and load(RECORDED).started[:10] in said


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"device": "tpu"}, "device"),
        ({"device": "gpu"}, "device"),
        ({"threads": 0}, "threads"),
        ({"threads": 9999}, "threads"),
        ({"repeats": 1}, "repeats"),
        ({"model": "laptop", "ranks": 2}, "model and ranks"),
        ({"model": "mixtral-8x7b"}, "model"),
    ],
)
def test_what_measuring_refuses_it_refuses_in_a_page_too(page, capsys, asked, refused):
    with pytest.raises(ValueError, match=rf"^{refused}"):
        measure(**asked)
    assert capsys.readouterr().out == ""


def drawn_names(record):
    fig, axes = plt.subplots(2)
    own_curve.draw_own_curve(axes[0], record)
    own_curve.draw_streams(axes[1], record)
    names = [text.get_text() for ax in axes for text in ax.texts]
    plt.close(fig)
    return " ".join(names)


def test_pictures_name_the_record_there_and_the_machine_elsewhere(monkeypatch):
    record = load(RECORDED)
    assert "this machine" in drawn_names(record) and "recorded" not in drawn_names(record)
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert "this machine" not in drawn_names(record) and "recorded CPU" in drawn_names(record)


@pytest.mark.parametrize(
    "command",
    [
        ["grade", "01", "submissions", "--out", "marks.csv"],
        ["grade", "01", "submissions", "--out", "marks.csv", "--unsafe-draft"],
        ["course"],
        ["course", "--no-open"],
    ],
)
def test_a_command_that_needs_a_machine_says_so_in_one_line(
    page, capsys, command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert roofline_lib.__main__.main(command) in (1, 3)
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and "page" in told.err
    assert list(tmp_path.iterdir()) == []
