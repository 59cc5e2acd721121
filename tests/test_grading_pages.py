"""What a teacher and a student read: feedback, the class's page, open answers, late days, and the
gradebooks of learning platforms."""

import csv
import io
import json
import re

import pytest
from harness.grading import FIRST, grade, read, rows, write

from roofline_lib.checks.slips import slip_texts
from roofline_lib.grading import gradebooks, pages
from roofline_lib.grading.rows import Row
from roofline_lib.grading.words import LONGEST_ANSWER, open_answer

SLIPPED = "def product_flops(m, n, k):\n    return m * n * k"
MARKUP = '<script>alert(1)</script><img src=x onerror="alert(2)">'


def exercise(**sources):
    """The exercise of the first lesson with other sources in the cells of these ids."""
    book = read("exercises", FIRST)
    for cell in book["cells"]:
        cell["source"] = sources.get(cell["id"], cell["source"])
    return book


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A folder with a class graded once, with late days, marks by hand and a gradebook."""
    folder = tmp_path_factory.mktemp("week")
    students = {
        "ada": read("solutions", FIRST),
        "bob": exercise(product_flops=SLIPPED, one_user=f"Batch. {MARKUP}"),
        f"<i>{MARKUP}".replace("/", ""): exercise(product_flops=SLIPPED),
    }
    write(folder / "in", **students)
    (folder / "late.csv").write_text("student,days\nada,2\nbob,\n")
    (folder / "hand.csv").write_text(
        f'student,question,mark,comment\nada,one_user,3,"Good.\n{MARKUP.replace(chr(34), "")}"\n'
    )
    (folder / "names.txt").write_text("ada\nzed\n")
    (folder / "canvas.csv").write_text(
        "Student,ID,SIS Login ID,Section,Other (1)\n    Points Possible,,,,5\nAda,7,ada,S,4\n"
    )
    lists = {"students": "names.txt", "late-days": "late.csv", "manual": "hand.csv"}
    options = [part for name, file in lists.items() for part in (f"--{name}", folder / file)]
    done = grade(
        "01",
        folder / "in",
        *("--out", folder / "marks.csv", "--gradebook", folder / "canvas.csv"),
        *options,
    )
    assert done.returncode == 0, done.stderr
    return folder


def page(folder, name):
    return (folder / name).read_text(encoding="utf-8")


def test_feedback_names_the_slip_its_hint_and_the_question_in_its_words(graded):
    told = page(graded, "marks_feedback/bob.html")
    assert "Looks like mac-is-flop" in told and slip_texts()["mac-is-flop"] in told
    assert "m n results of k multiply-adds." in told
    assert "Marked 1: the work of a product" in told and "2 × 3 × 4 makes 48." in told
    assert "notebooks/01_arithmetic_intensity.ipynb" in told
    assert "Looks like" not in page(graded, "marks_feedback/ada.html")


def test_no_page_holds_a_key_or_an_answer_but_its_own(graded):
    told = page(graded, "marks_feedback/bob.html")
    assert "Rubric" not in told and "return 2 * m * n * k" not in told
    assert "ada" not in told and "Good." not in told


def test_late_days_are_said_on_the_page_and_in_the_csv(graded):
    ada, bob = (rows(graded / "marks.csv")[name] for name in ("ada", "bob"))
    assert (ada["score"], ada["late_days"], bob["late_days"]) == ("6.4", "2", "0")
    sentence = "2 days late: 20 % off 8 points"
    assert sentence in ada["note"] and page(graded, "marks_feedback/ada.html").count(sentence) == 1
    assert " late:" not in page(graded, "marks_feedback/bob.html")


def test_a_comment_reaches_its_student(graded):
    told = page(graded, "marks_feedback/ada.html")
    assert "Good.\n&lt;script&gt;" in told and "3 of 4" in told


def test_the_class_page_counts_right_answers_and_slips(graded):
    told = page(graded, "marks_class.html")
    assert "4 students: 3 graded, 1 missing." in told
    assert "1 of 3 right" in told and "2 × mac-is-flop" in told
    assert "Students by inputs right: 2 at 0 %, 1 at all" in told


def test_nothing_that_a_student_wrote_is_markup_on_any_page(graded):
    for path in graded.rglob("*.html"):
        told = path.read_text(encoding="utf-8")
        assert "<script>alert" not in told and "<img" not in told and "<i>" not in told, path
        assert "default-src 'none'" in told


def test_open_answers_stand_beside_the_rubric(graded):
    told = page(graded, "marks_open.html")
    assert "Batch. &lt;script&gt;alert(1)" in told and "<strong>Rubric</strong>" in told
    assert 'value="3"' in told  # a mark that was given already


@pytest.mark.parametrize(
    ("cells", "answer"),
    [
        ([("one_user", "*Your answer.*")], ""),
        ([("one_user", "Batch.")], "Batch."),
        ([("one_user", "*Your answer.*"), ("mine", "Batch.")], "Batch."),
        ([("one_user", "A"), ("mine", "B"), ("next", "Next: ...")], "A\n\nB"),
        ([("other", "Batch.")], ""),
        ([("one_user", "x" * 100_000)], "x" * LONGEST_ANSWER),
    ],
)
def test_an_open_answer_is_what_stands_in_its_cell_and_those_added(cells, answer):
    book = {"cells": [{"id": i, "cell_type": "markdown", "source": s} for i, s in cells]}
    handed_out = frozenset({"one_user", "next"})
    assert open_answer(json.dumps(book).encode(), "one_user", handed_out) == answer


@pytest.mark.parametrize("data", [b"", b"[]", b'{"cells": 3}', b'{"cells": [3]}', b"[" * 100_000])
def test_an_open_answer_of_no_notebook_is_none(data):
    assert open_answer(data, "one_user", frozenset()) == ""


def test_words_can_be_told_from_the_card_by_day_and_by_night():
    for theme in (pages.LIGHT, pages.DARK):
        for name in ("ink", "faint", "memory", "compute", "room", "over"):
            assert contrast(theme[name], theme["card"]) >= 4.5, name


def contrast(one, other):
    """WCAG 2.2's ratio of two colours."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


# Gradebooks

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,mine,01_x (55),Final Score\n"
    "    Points Possible,,,,,,9,(read only)\n"
    '"Doe, Jane",1,s1,jdoe,A,note,3,\n"Roe, Jo",2,s2,jroe,A,,4,\n"Student, Test",3,,,A,,,\n'
)
WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),"
    "Feedback comments\n"
    'Participant 11,Jane Doe,jane@x.edu,Submitted,-,10.00,"Monday, 1 June",\n'
    "Participant 12,Jo Roe,jo@x.edu,Submitted,5,10.00,-,old\n"
)
GRADES = "First name,Last name,ID number,Email address,Course total\nJane,Doe,77,jane@x.edu,3\n"


def filled(text, tmp_path, *students):
    path = tmp_path / "export.csv"
    path.write_text(text, encoding="utf-8-sig")
    table = [Row(student, 2.5, 5, {"f": 1, "g": None}, "graded", "") for student in students]
    done = gradebooks.filled_in(gradebooks.read_gradebook(path), table, "01_x")
    return done, list(csv.reader(io.StringIO(done.text)))


@pytest.mark.parametrize("name", ["Doe, Jane", "jane doe", "doejane", "1", "s1", "jdoe"])
def test_canvas_gets_its_own_ids_and_nobody_else_a_line(name, tmp_path):
    done, lines = filled(CANVAS, tmp_path, name)
    assert lines == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_x (55)"],
        ["Points Possible", "", "", "", "", "9"],
        ["Doe, Jane", "1", "s1", "jdoe", "A", "2.5"],
    ]
    assert done.platform == "Canvas" and not done.remarks


def test_canvas_gets_a_new_assignment_where_there_is_none(tmp_path):
    _, lines = filled(CANVAS.replace("01_x (55)", "Quiz (55)"), tmp_path, "jdoe")
    assert lines[0][-1] == "01_x" and lines[1][-1] == "5"


@pytest.mark.parametrize("name", ["Jane Doe", "jane@x.edu", "jane", "11", "Jane Doe 11"])
def test_a_moodle_worksheet_comes_back_whole_with_grade_and_feedback(name, tmp_path):
    done, lines = filled(WORKSHEET, tmp_path, name)
    before = list(csv.reader(io.StringIO(WORKSHEET)))
    assert lines[0] == before[0] and lines[2] == before[2]
    assert lines[1] == [*before[1][:4], "2.5", *before[1][5:7], "[2.5 of 5; f: 1; g: –]"]
    assert done.platform == "Moodle"


def test_moodles_gradebook_gets_mark_and_feedback_by_id(tmp_path):
    _, lines = filled(GRADES, tmp_path, "77")
    assert lines[0] == [*GRADES.split(",")[:4], "01_x", "01_x (feedback)"]
    assert lines[1][2:5] == ["77", "jane@x.edu", "2.5"]


def test_who_is_nowhere_or_not_alone_in_a_gradebook_is_named_and_left_out(tmp_path):
    twice = CANVAS + '"Doe, Jane",9,s9,jane9,B,,,\n'
    done, lines = filled(twice, tmp_path, "Jane Doe", "zoe", "jroe")
    assert [line[1] for line in lines[2:]] == ["2"]
    assert [re.search("zoe|Jane Doe", remark)[0] for remark in done.remarks] == ["zoe", "Jane Doe"]


def test_two_students_never_share_a_line(tmp_path):
    done, lines = filled(CANVAS, tmp_path, "jdoe", "Jane Doe")
    assert len(lines) == 3 and "Jane Doe" in done.remarks[0]


def filled_by(text, tmp_path, *rows):
    path = tmp_path / "export.csv"
    path.write_text(text, encoding="utf-8")
    return gradebooks.filled_in(gradebooks.read_gradebook(path), rows, "01_x")


def test_what_a_teacher_has_in_the_gradebook_stays(tmp_path):
    """Excused students, marks of those who handed in nothing here, comments."""
    excused = CANVAS.replace("A,,4,", "A,,EX,")
    absent = Row("jdoe", 0, 5, {}, "missing", "")
    done = filled_by(excused, tmp_path, absent, Row("jroe", 5, 5, {}, "graded", ""))
    assert not re.search("^.(Doe|Roe)", done.text, re.MULTILINE)
    assert [re.search("jdoe|jroe", remark)[0] for remark in done.remarks] == ["jroe", "jdoe"]
    # nothing there yet: nothing handed in is 0
    done = filled_by(CANVAS.replace("note,3,", "note,,"), tmp_path, absent)
    assert '"Doe, Jane",1,s1,jdoe,A,0' in done.text

    row = Row("Jo Roe", 4, 5, {"f": 4}, "graded", "", comments=("Well said.",))
    once = filled_by(WORKSHEET, tmp_path, row).text
    assert "old [4 of 5; f: 4] Well said." in once
    assert filled_by(once, tmp_path, row).text == once


def test_a_student_with_an_open_answer_that_nobody_has_marked_waits(tmp_path):
    row = Row("jroe", 5, 9, {"f": 5, "g": None}, "graded", "", unmarked=("g",))
    done = filled_by(CANVAS, tmp_path, row)
    assert "Roe" not in done.text and "no mark yet: jroe" in done.remarks[0]


@pytest.mark.parametrize(("text", "counts"), [(CANVAS, 9), (WORKSHEET, 10)])
def test_other_points_than_the_gradebooks_are_refused(text, counts, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    exported = gradebooks.read_gradebook(tmp_path / "x.csv")
    gradebooks.check_points(exported, "01_x", counts)
    with pytest.raises(ValueError, match=f"counts {counts} points there and 5 here"):
        gradebooks.check_points(exported, "01_x", 5)


@pytest.mark.parametrize(
    ("separator", "encoding"), [(";", "utf-8"), ("\t", "utf-16"), ("\t", "utf-8")]
)
def test_a_gradebook_that_a_spreadsheet_has_saved_is_read(separator, encoding, tmp_path):
    for text, kind in (
        (CANVAS, "Canvas"),
        (WORKSHEET, "Moodle worksheet"),
        (GRADES, "Moodle grades"),
    ):
        lines = csv.reader(io.StringIO(text))
        with (tmp_path / "x.csv").open("w", encoding=encoding, newline="") as file:
            csv.writer(file, delimiter=separator).writerows(lines)
        assert gradebooks.read_gradebook(tmp_path / "x.csv").kind == kind


def test_who_is_on_the_list_alone_takes_nobodys_place(tmp_path):
    only = WORKSHEET.replace("Participant 12,Jo Roe", "Participant 12,Ann Li")
    rows = [Row("Ann Li", 0, 5, {}, "missing", ""), Row("Ann Li 12", 5, 5, {}, "graded", "")]
    assert "Participant 12,Ann Li,jo@x.edu,Submitted,5," in filled_by(only, tmp_path, *rows).text


def test_a_name_without_the_marks_on_its_letters_is_found(tmp_path):
    accents = CANVAS.replace("Roe, Jo", "O'Neil, Zo\u00eb")
    assert "Neil" in filled_by(accents, tmp_path, Row("oneilzoe", 5, 5, {}, "graded", "")).text


def test_no_gradebook_is_refused_with_what_would_do(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="needs the columns Student, ID and Section"):
        gradebooks.read_gradebook(tmp_path / "x.csv")
