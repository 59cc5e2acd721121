"""What late days cost, and the list that a teacher writes of them."""

import pytest

from roofline_lib.grading import roster
from roofline_lib.grading.lateness import Lateness


@pytest.mark.parametrize(
    ("late", "left"),
    [(Lateness(0), 4), (Lateness(1), 3.6), (Lateness(11), 0), (Lateness(2, 0), 4)],
)
def test_a_late_day_takes_its_share_and_never_more_than_all(late, left):
    assert late.left_of(4) == left


@pytest.mark.parametrize(
    "line", ["eve,1", "ada,-1", "ada,1.5", "ada,one", "ada,1001", "ada,1\nada,2", "ada,²"]
)
def test_late_days_that_cannot_be_are_named_with_their_line(line, tmp_path):
    (tmp_path / "late.csv").write_text(f"student,days\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"late\.csv, line [23]"):
        roster.read_late_days(tmp_path / "late.csv", {"ada"})
