"""The page of open answers in a browser: what a teacher types there is what `--manual` reads."""

from roofline_lib.grading.draw import OpenQuestion
from roofline_lib.grading.open_answers import open_page
from roofline_lib.grading.roster import HandMark, read_hand_marks
from roofline_lib.grading.words import LessonWords, Words

MARKUP = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
STUDENTS = ("ada", 'Roe, "Bob"', "=cy", "zoe")


def test_marks_and_comments_go_from_the_page_into_the_file(chrome, tmp_path):
    question = OpenQuestion("one_user", 4)
    words = LessonWords("x", "Lesson", {"one_user": Words("Why?", "Half a page.", "1 point for A")})
    answers = {(student, "one_user"): MARKUP for student in STUDENTS}
    given = {("ada", "one_user"): HandMark(2, "So far.")}
    (tmp_path / "open.html").write_text(
        open_page(answers, [question], given, words, "by_hand.csv"), encoding="utf-8"
    )
    page = chrome.new_page()
    try:
        page.goto((tmp_path / "open.html").as_uri())
        assert page.title() == "Lesson: open answers"
        assert page.locator(".said").first.inner_text() == MARKUP
        bob = page.get_by_label('Mark of Roe, "Bob", one_user')
        for wrong in ("5", "-1", "two", "3,5,0", "1e0"):
            bob.fill(wrong)
            assert bob.get_attribute("aria-invalid") == "true", wrong
            page.get_by_role("button").click()
            assert page.locator("output").inner_text().endswith('the question has: Roe, "Bob"')
        bob.fill("3,5")
        assert bob.get_attribute("aria-invalid") == "false"
        page.get_by_label('Comment for Roe, "Bob", one_user').fill('Good, "really".\nNumbers?')
        page.get_by_label("Mark of =cy, one_user").fill("0")
        with page.expect_download() as download:
            page.get_by_role("button").click()
        download.value.save_as(tmp_path / "by_hand.csv")
    finally:
        page.close()
    assert read_hand_marks(tmp_path / "by_hand.csv", STUDENTS, [question]) == {
        ("ada", "one_user"): HandMark(2, "So far."),
        ('Roe, "Bob"', "one_user"): HandMark(3.5, 'Good, "really".\nNumbers?'),
        ("=cy", "one_user"): HandMark(0),
    }
