"""A class graded: who handed in what, the key, each notebook in its sandbox, then the report. A run
that is interrupted goes on where it stopped."""

import hashlib
import json
import os
import sys
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import roofline_lib
from roofline_lib.arguments import number
from roofline_lib.extras import extra
from roofline_lib.grading.draw import run_key
from roofline_lib.grading.gradebooks import check_points, filled_in, read_gradebook
from roofline_lib.grading.judging import OTHER_LESSON, Marks, Outcome, failed, grade_one
from roofline_lib.grading.lateness import PERCENT_A_DAY, Lateness
from roofline_lib.grading.report import Report, pages_of, replace, write, write_moodle_feedback
from roofline_lib.grading.roster import read_hand_marks, read_late_days, read_names
from roofline_lib.grading.rows import Row, counted
from roofline_lib.grading.sandbox import NoSandbox, free_processors, library_copy, working_mode
from roofline_lib.grading.solutions import functions_of, lesson_name, solution, solution_folders
from roofline_lib.grading.submissions import (
    Stored,
    collect,
    namesakes,
    one_folder,
    packed_by_platform,
    passed_over,
)
from roofline_lib.grading.words import open_answer, words_of
from roofline_lib.measuring.system import cpu_quota
from roofline_lib.surroundings import in_browser

PASSED_OVER = 20  # names, at most, that a remark lists
_NO_CSV = (".xlsx", ".xls", ".ods", ".html", ".ipynb")
LONGEST = 3600  # CPU seconds of a question
MOST_AT_ONCE = 1000  # submissions
ON_A_CLUSTER = 64  # submissions handed out at a time
IN_BROWSER = (
    "grade starts a program of its own for each notebook, which a browser's page cannot: "
    "run it where Python is installed"
)


def grade(
    lesson: str,
    submissions: str | os.PathLike,
    *,
    out: str | os.PathLike,
    seed: str = "",
    students: str | os.PathLike | None = None,
    solutions: str | os.PathLike | None = None,
    manual: str | os.PathLike | None = None,
    late_days: str | os.PathLike | None = None,
    late_percent: float = PERCENT_A_DAY,
    gradebook: str | os.PathLike | None = None,
    timeout: int = 10,
    workers: int | None = None,
    dask: str | None = None,
    unsafe_draft: bool = False,
) -> list[Row]:
    """Grade a class's notebooks: write a CSV of marks and a page for each student, and give the
    rows of the CSV.

    `lesson` is a name such as "01_arithmetic_intensity", or its beginning, "01". `submissions` is a
    folder with `<student>.ipynb` or `<student>/<anything>.ipynb`. The CSV goes to `out`, the pages
    into `<out>_feedback/` beside it. Remarks and a progress bar go to stderr.

    * `seed`: what this term's inputs are drawn from, for example "2026-spring"
    * `students`: a file of names, one a line, that must have a row
    * `solutions`: a folder of your own, laid over solutions/
    * `manual`: a CSV with student,question,mark for what is marked by hand, and perhaps comment;
      the button of `<out>_open.html` writes one
    * `late_days`: a CSV with student,days; each day late takes `late_percent` of the points
    * `gradebook`: a gradebook as Canvas or Moodle exports it (see gradebooks.py); the same with
      these marks goes to `<out>_canvas.csv` or `<out>_moodle.csv`, to be imported there
    * `timeout`: CPU seconds a question
    * `workers`: submissions at a time; where None as many as have a processor each, of those that
      this process, or the container it runs in, is given
    * `dask`: the address of a Dask cluster whose workers do it instead
    * `unsafe_draft`: without a sandbox: the notebooks run as you, which each row's status says

    A row's status is "graded" (or "draft"), "missing", "empty", "unreadable", or "error" where the
    grader itself failed: the same call then does these rows again. ValueError or OSError for a
    lesson, a folder or a file that is wrong; NoSandbox where this machine has none; Broken where
    the solution does not run. After a KeyboardInterrupt the same call goes on where it stopped.
    """
    if in_browser():
        raise NoSandbox(IN_BROWSER)
    timeout = _whole("timeout", timeout, "CPU seconds a question", most=LONGEST)
    workers = _whole("workers", workers or processors(), "submissions at a time", most=MOST_AT_ONCE)
    if not unsafe_draft and not dask:
        working_mode()
    folders = solution_folders(solutions)
    name = lesson_name(lesson, folders)
    submissions, out = Path(submissions), Path(out)
    listed = read_names(Path(students)) if students else set()
    book = solution(name, folders)
    handed_in = collect(submissions, name, listed, functions_of(book))
    _remark_on_files_passed_over(submissions)
    packed = _remark_on_platform(submissions, listed)
    if students:
        _remark_on_names(handed_in, listed)
    _check_out(out, submissions)
    key = json.dumps(book).encode()
    names = [one.student for one in handed_in]
    asked, tables = run_key(key, names, seed, draft=unsafe_draft)
    for question in asked.marked:
        library_copy(tuple(question.without))  # a ValueError where one is misspelt
    by_hand = read_hand_marks(Path(manual), set(names), asked.open) if manual else None
    late = _lateness(late_days, late_percent, names)
    exported = read_gradebook(Path(gradebook)) if gradebook else None
    if exported:
        most = sum(question.points for question in counted(asked.questions, by_hand))
        check_points(exported, name, most)
    done = Progress(out, [key, _own_code(), seed, timeout, unsafe_draft], handed_in)
    left = [one for one in handed_in if one.student not in done.marks]
    jobs = ((_taken(one), asked, tables[one.student], timeout, unsafe_draft) for one in left)
    with done, _executor(workers, dask) as executor:
        _run(executor, jobs, len(left), done, ON_A_CLUSTER if dask else 2 * workers)
    report = Report(
        marks=[done.marks[student] for student in names],
        questions=asked.questions,
        words=words_of(book, name, asked),
        by_hand=by_hand,
        late=late,
        answers=_open_answers(handed_in, asked, book),
    )
    rows = write(out, report)
    if exported:
        _fill_in(exported, out, rows, name)
    if not any(row.status == "error" for row in rows):
        done.forget()
    if asked.open and not manual:
        left_out = ", ".join(question.name for question in asked.open)
        remark(f"not in these marks: {left_out}, to be marked by hand; --manual FILE adds them")
    if packed.platform == "Moodle":
        write_moodle_feedback(out, packed)
    _remark_on_rows(rows, out)
    return rows


def _lateness(path, percent, names):
    """{student: Lateness} of a file with late days; None where there is none."""
    percent = float(number("late_percent", percent, "% of the points a day", least=0, single=True))
    if percent > 100:
        raise ValueError(f"late_percent must be 0 to 100 % of the points a day; got {percent:g}")
    if path is None:
        return None
    days = read_late_days(Path(path), names)
    return {name: Lateness(days.get(name, 0), percent) for name in names}


def _open_answers(handed_in, asked, book):
    """{(student, question): text} of everybody whose notebook is there."""
    handed_out = frozenset(str(cell.get("id", "")) for cell in book["cells"])
    return {
        (one.student, question.name): open_answer(data, question.name, handed_out)
        for one in (handed_in if asked.open else ())
        if (data := _taken(one).data)
        for question in asked.open
    }


def _fill_in(exported, out, rows, lesson):
    """Write the gradebook to import, and say who is not in it."""
    filled = filled_in(exported, rows, lesson)
    path = out.with_name(f"{out.stem}_{filled.platform.lower()}.csv")
    replace(path, filled.text)
    for text in filled.remarks:
        remark(text)


class Progress:
    """Marks that are done, kept in `<out>.partial` until the CSV is written. In a `with` it writes
    down each that is added.

    `version` is all that the marks depend on besides the submission: what another version has left
    there is not taken up.
    """

    def __init__(self, out, version, submissions):
        self._path = out.with_name(f"{out.name}.partial")
        self._fingerprints = {
            one.student: hashlib.sha256(repr([*version, one]).encode()).hexdigest()
            for one in submissions
        }
        self.marks = {}
        for line in self._lines_kept():
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self._take(json.loads(line))  # a torn or foreign line is graded anew

    def _lines_kept(self):
        try:
            return self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return []

    def _take(self, record):
        student, fingerprint = record["student"], record.pop("key")
        if self._fingerprints.get(student) == fingerprint:
            kept = record.pop("outcomes")
            outcomes = {
                name: Outcome(**one | {"slips": tuple(one["slips"])}) for name, one in kept.items()
            }
            self.marks[student] = Marks(**record, outcomes=outcomes)

    def __enter__(self):
        self._file = self._path.open("w", encoding="utf-8")
        for marks in list(self.marks.values()):
            self.add(marks)
        return self

    def __exit__(self, *_):
        self._file.close()

    def add(self, marks):
        """Take the Marks of a student; those of a failure of the grader are not kept for a later
        run."""
        self.marks[marks.student] = marks
        if marks.status != "error":
            record = {"key": self._fingerprints[marks.student], **asdict(marks)}
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def forget(self):
        self._path.unlink()


def remark(text):
    """A line on stderr. Names of files stand in it, whose control characters are written out."""
    shown = "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)
    print(shown, file=sys.stderr)


def _taken(one):
    return one.taken() if isinstance(one, Stored) else one


def _run(executor, jobs, count, done, at_once):
    """Grade all `count` that are left, under a progress bar. No more than `at_once` are handed out
    at a time, as each has its notebook in memory."""
    jobs, running = iter(jobs), {}
    try:
        with extra("tqdm").tqdm(total=count, unit="notebook", disable=None) as bar:
            while True:
                for job in islice(jobs, at_once - len(running)):
                    running[executor.submit(grade_one, *job)] = job[0].student
                if not running:
                    return
                finished = wait(running, return_when=FIRST_COMPLETED).done
                for future in [one for one in running if one in finished]:
                    done.add(_marks_of(future, running.pop(future)))
                    bar.update()
    except KeyboardInterrupt:
        begun = sum(not (future.cancel() or future.done()) for future in running)
        remark(f"interrupted: waiting for {begun} notebooks that have begun")
        raise
    finally:
        for future in running:
            future.cancel()


def _marks_of(future, student):
    """The Marks that a future gives; a worker that is lost costs its own row only."""
    try:
        return future.result()
    except NoSandbox:
        raise
    except Exception as error:
        return failed(student, error)


def _whole(name, value, unit, most):
    value = int(number(name, value, unit, least=1, whole=True, single=True))
    if value > most:
        raise ValueError(f"{name} must be at most {most:,} {unit}; got {value:,}")
    return value


def processors():
    """How many sandboxes can have a processor each: those that this process may use, and no more
    than its container is given the time of."""
    quota = cpu_quota()
    return max(1, min(len(free_processors()), int(quota) if quota else MOST_AT_ONCE))


def _remark_on_files_passed_over(folder):
    names = passed_over(folder)
    if names:
        remark(f"passed over, as they are no .ipynb: {_some(names)}")


def _remark_on_platform(submissions, listed):
    """Say what a learning platform packed, and what of it is taken otherwise; gives it."""
    packed, strange = packed_by_platform(submissions)
    if strange:
        remark(f"the folder is {packed.platform}'s; taken by their own names: {_some(strange)}")
    if packed.typed:
        remark(
            f"passed over, as they were typed on {packed.platform}: {_some(sorted(packed.typed))}"
        )
    if inside := one_folder(submissions):
        remark(f"{inside} is all that lies in {submissions}: is that the class's folder?")
    for called, students in namesakes(packed).items():
        if called in listed:
            remark(f"{called} in --students is {' and '.join(sorted(students))}: write both there")
    return packed


def _remark_on_rows(rows, out):
    """Say what came of it, and what looks wrong."""
    counts = Counter(row.status for row in rows)
    pages = out.with_name(f"{out.stem}_feedback")
    parts = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    unmarked = [row.student for row in rows if row.unmarked]
    if unmarked:
        remark(f"an open answer has no mark yet: {_some(unmarked)}")
    strangers = sum(OTHER_LESSON in row.note for row in rows)
    if 2 * strangers > len(rows):
        remark(
            f"{strangers} of {len(rows)} notebooks have no function of this lesson: "
            "are lesson and folder the right ones?"
        )
    remark(f"{parts}; marks in {out}, pages in {pages}")


def _some(names):
    more = " ..." if len(names) > PASSED_OVER else ""
    return f"{', '.join(names[:PASSED_OVER])}{more}"


def _remark_on_names(handed_in, listed):
    """Say who handed in and is not on the list: perhaps one student under two names."""
    unknown = [one.student for one in handed_in if one.student not in listed]
    if unknown:
        remark(f"not in --students: {_some(unknown)}")


def _check_out(out, submissions):
    """See that CSV and pages can be written, before an hour of grading and not after it."""
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(
            f"--out {out} lies in {submissions}, where its pages would be taken for a student's; "
            "choose another folder"
        )
    if out.is_dir() or out.suffix.lower() in _NO_CSV:
        raise ValueError(f"--out {out} must be a CSV file to write, such as marks.csv")
    pages_of(out)
    existed = out.exists()
    out.open("ab").close()
    if not existed:
        out.unlink()


def _executor(workers, dask):
    if not dask:
        return ThreadPoolExecutor(workers)
    from distributed import Client

    return Client(dask).get_executor()


def _own_code():
    """A fingerprint of the grader and the library, so that an interrupted run is not taken up by
    another version."""
    files = sorted(Path(roofline_lib.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
