"""A notebook for each student, with numbers of its own in the practice questions."""

import json
import re

import make_exercises
import pytest
from harness.grading import FIRST, ran, read

from roofline_lib.grading import grade


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("variants")
    (folder / "names.txt").write_text("ada\nbob\n", encoding="utf-8")
    arguments = ["--variants", str(folder / "names.txt"), "--seed", "2026", "--lesson", "01"]
    make_exercises.main([*arguments, "--out", str(folder / "out")])
    return folder / "out" / FIRST


def test_each_student_gets_a_notebook_that_asks_with_own_numbers(handed_out):
    assert sorted(path.name for path in handed_out.iterdir()) == ["ada.ipynb", "bob.ipynb"]
    ada, bob = (json.loads((handed_out / f"{s}.ipynb").read_text()) for s in ("ada", "bob"))
    plain = read("exercises", FIRST)
    assert [cell["id"] for cell in ada["cells"]] == [cell["id"] for cell in plain["cells"]]
    asked = [re.findall(r"x-(?:levels|weights|macs): not .*", ran(book)) for book in (ada, bob)]
    assert len(asked[0]) == len(asked[1]) == 3 and not set(asked[0]) & set(asked[1])
    assert "variant" not in json.dumps(plain)
    told = json.dumps(ada)
    assert "solutions/" in json.dumps(plain) and "solutions" not in told and "](../" not in told


def test_a_notebook_of_a_variant_is_graded_as_any_other(handed_out, tmp_path):
    """The functions are called on drawn inputs; what a variant changes carries no marks."""
    book = json.loads((handed_out / "ada.ipynb").read_text())
    answers = {cell["id"]: cell["source"] for cell in read("solutions", FIRST)["cells"]}
    for cell in book["cells"]:
        if cell["id"] in ("product_flops", "rows_for"):
            cell["source"] = answers[cell["id"]]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ada.ipynb").write_text(json.dumps(book))
    (row,) = grade("01", tmp_path / "in", out=tmp_path / "marks.csv")
    assert (row.score, row.note) == (2, "")


def test_variants_never_take_the_place_of_the_courses_exercises(tmp_path, capsys):
    (tmp_path / "names.txt").write_text("ada\n")
    with pytest.raises(SystemExit):
        make_exercises.main(["--variants", str(tmp_path / "names.txt")])
    assert "needs an --out of its own" in capsys.readouterr().err
