"""`python -m roofline_lib grade`: a class's notebooks in, a CSV of marks and a page for each
student out."""

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import roofline_lib
from roofline_lib.grading.lessons import lesson_name, solution, solution_folders
from roofline_lib.grading.lists import read_manual, read_names
from roofline_lib.grading.marks import Marks, Outcome, collect, grade_one, passed_over, references
from roofline_lib.grading.report import pages_of, write
from roofline_lib.grading.sandbox import Broken, NoSandbox, library_copy, way_in

EXITS = """exit codes: 0 every notebook graded, or not there or not readable, as its row says; 1 the grader itself failed on some rows
(status "error"): run again; 2 the command or a file it names is wrong; 3 no sandbox on this machine; 4 the solution does not run; 130
interrupted: the same command goes on where it stopped"""


def main(argv=None):
    """Parse the command line, grade, and give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib grade", description=__doc__, epilog=EXITS
    )
    parser.add_argument("lesson", help="such as 01_arithmetic_intensity, or its beginning, 01")
    parser.add_argument(
        "submissions", type=Path, help="a folder with <student>.ipynb or <student>/<anything>.ipynb"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="the CSV to write; pages for students go to <out>_feedback/",
    )
    parser.add_argument(
        "--seed",
        default="",
        metavar="TERM",
        help="what this term's inputs are drawn from, for example 2026-spring",
    )
    parser.add_argument(
        "--students", type=Path, metavar="FILE", help="names, one a line, that must have a row"
    )
    parser.add_argument(
        "--solutions", type=Path, metavar="DIR", help="a folder of your own, laid over solutions/"
    )
    parser.add_argument(
        "--manual",
        type=Path,
        metavar="FILE",
        help="CSV with student,question,mark for what is marked by hand",
    )
    parser.add_argument(
        "--timeout",
        type=_at_least_one,
        default=10,
        metavar="S",
        help="CPU seconds a question (%(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=_at_least_one,
        default=os.cpu_count(),
        metavar="N",
        help="submissions at a time (%(default)s)",
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="use the workers of this Dask cluster instead"
    )
    parser.add_argument(
        "--unsafe-draft",
        action="store_true",
        help="without a sandbox: the notebooks run as you. Written into the CSV",
    )
    args = parser.parse_args(argv)
    try:
        return grade(args)
    except NoSandbox as error:
        return _say(error, 3)
    except (OSError, ValueError) as error:
        return _say(error, 2)
    except Broken:
        return _say(
            "nothing was graded; what stands above is what the solution notebook ended with in the sandbox",
            4,
        )
    except KeyboardInterrupt:
        return _say("interrupted; the same command goes on from here", 130)


def grade(args):
    """All of it, once the arguments are known; gives the exit code."""
    if not args.unsafe_draft and not args.dask:
        way_in()
    folders = solution_folders(args.solutions)
    name = lesson_name(args.lesson, folders)
    submissions = collect(
        args.submissions, name, read_names(args.students) if args.students else ()
    )
    if strays := passed_over(args.submissions):
        _say(
            f"passed over, as they are no .ipynb: {', '.join(strays[:20])}{' ...' if len(strays) > 20 else ''}",
            0,
        )
    _check_out(args.out, args.submissions)
    data = json.dumps(solution(name, folders)).encode()
    lesson, tables = references(
        data, [s.student for s in submissions], args.seed, draft=args.unsafe_draft
    )
    for question in lesson["questions"]:
        library_copy(tuple(question.get("without", ())))  # a ValueError where one is misspelt
    by_hand = read_manual(args.manual, {s.student for s in submissions}, lesson["questions"])
    rows, kept = {}, args.out.with_name(f"{args.out.name}.partial")
    version = [data, _own_code(), args.seed, args.timeout, args.unsafe_draft]
    keys = {
        s.student: hashlib.sha256(repr([*version, s]).encode()).hexdigest() for s in submissions
    }
    with suppress(OSError, ValueError):  # a torn last line is graded anew
        for line in kept.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if keys.get(record["student"]) == record.pop("key"):
                record["outcomes"] = {
                    question: Outcome(**outcome) for question, outcome in record["outcomes"].items()
                }
                rows[record["student"]] = Marks(**record)
    jobs = [
        (s, lesson, tables[s.student], args.timeout, args.unsafe_draft)
        for s in submissions
        if s.student not in rows
    ]
    with kept.open("w", encoding="utf-8") as file, _executor(args) as executor:
        futures = [executor.submit(grade_one, *job) for job in jobs]
        try:
            for marks in chain(list(rows.values()), _as_done(futures)):
                rows[marks.student] = marks
                if marks.status != "error":
                    file.write(json.dumps({"key": keys[marks.student], **asdict(marks)}) + "\n")
                    file.flush()
        except KeyboardInterrupt:
            begun = sum(not (future.cancel() or future.done()) for future in futures)
            _say(f"interrupted: waiting for {begun} notebooks that have begun", 130)
            raise
        finally:
            for future in futures:
                future.cancel()
    write(args.out, [rows[s.student] for s in submissions], lesson["questions"], by_hand, name)
    failed = sum(marks.status == "error" for marks in rows.values())
    if not failed:
        kept.unlink()
    if (
        open_ones := [q["name"] for q in lesson["questions"] if q.get("by_hand")]
        if not args.manual
        else []
    ):
        print(
            f"not in these marks: {', '.join(open_ones)}, to be marked by hand; --manual FILE adds them",
            file=sys.stderr,
        )
    return _say(f"{failed} of {len(rows)} rows failed; run again", 1) if failed else 0


def _as_done(futures):
    """Marks as they come, under a progress bar."""
    from tqdm import tqdm

    for future in tqdm(as_completed(futures), total=len(futures), unit="notebook", disable=None):
        yield future.result()


def _at_least_one(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number, at least 1; got {text}")
    return int(text)


def _check_out(out, submissions):
    """See that CSV and pages can be written, before an hour of grading and not after it."""
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(
            f"--out {out} lies in {submissions}, where its pages would be taken for a student's; choose another folder"
        )
    pages_of(out)
    there = out.exists()
    out.open("a").close()
    if not there:
        out.unlink()


def _executor(args):
    if not args.dask:
        return ThreadPoolExecutor(args.workers)
    from distributed import Client

    return Client(args.dask).get_executor()


def _own_code():
    """A fingerprint of the grader and the library, so that an interrupted run is not taken up by
    another version."""
    files = sorted(Path(roofline_lib.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _say(text, code):
    print(text, file=sys.stderr)
    return code
