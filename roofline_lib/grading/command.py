"""`python -m roofline_lib grade`: a class's notebooks in, a CSV of marks and a page for each student out."""

import argparse
import csv
import hashlib
import html
import json
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import roofline_lib
from roofline_lib.grading.lessons import lesson_name, solution, solution_folders
from roofline_lib.grading.marks import Marks, Outcome, collect, grade_one, references
from roofline_lib.grading.sandbox import Broken, NoSandbox, way_in

EXITS = """exit codes: 0 every notebook graded, or not there or not readable, as its row says; 1 the grader itself failed on some rows
(status "error"): run again; 2 the command or a file it names is wrong; 3 no sandbox on this machine; 4 the solution does not run; 130
interrupted: the same command goes on where it stopped"""


def main(argv=None):
    """Parse the command line, grade, and give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m roofline_lib grade", description=__doc__, epilog=EXITS)
    parser.add_argument("lesson", help="such as 01_arithmetic_intensity, or its beginning, 01")
    parser.add_argument("submissions", type=Path, help="a folder with <student>.ipynb or <student>/<anything>.ipynb")
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write; pages for students go to <out>_feedback/")
    parser.add_argument("--seed", default="", metavar="TERM", help="what this term's inputs are drawn from, for example 2026-spring")
    parser.add_argument("--students", type=Path, metavar="FILE", help="names, one a line, that must have a row")
    parser.add_argument("--solutions", type=Path, metavar="DIR", help="a folder of your own, laid over solutions/")
    parser.add_argument("--manual", type=Path, metavar="FILE", help="CSV with student,question,mark for what is marked by hand")
    parser.add_argument("--timeout", type=int, default=10, metavar="S", help="CPU seconds a question (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), metavar="N", help="submissions at a time (%(default)s)")
    parser.add_argument("--dask", metavar="ADDRESS", help="use the workers of this Dask cluster instead")
    parser.add_argument("--unsafe-draft", action="store_true", help="without a sandbox: the notebooks run as you. Written into the CSV")
    args = parser.parse_args(argv)
    try:
        return grade(args)
    except NoSandbox as error:
        return _say(error, 3)
    except (OSError, ValueError) as error:
        return _say(error, 2)
    except Broken:
        return _say("the solution notebook does not run in the sandbox; its error stands above", 4)
    except KeyboardInterrupt:
        return _say("interrupted; the same command goes on from here", 130)


def grade(args):
    """All of it, once the arguments are known; gives the exit code."""
    if not args.unsafe_draft and not args.dask:
        way_in()
    folders = solution_folders(args.solutions)
    name = lesson_name(args.lesson, folders)
    roster = args.students.read_text(encoding="utf-8").split("\n") if args.students else ()
    submissions = collect(args.submissions, name, {line.strip() for line in roster} - {""})
    data = json.dumps(solution(name, folders)).encode()
    lesson, tables = references(data, [s.student for s in submissions], args.seed, draft=args.unsafe_draft)
    by_hand = _read_manual(args.manual, {s.student for s in submissions}, lesson["questions"])
    rows, kept = {}, args.out.with_name(f"{args.out.name}.partial")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    version = [data, _own_code(), args.seed, args.timeout, args.unsafe_draft]
    keys = {s.student: hashlib.sha256(repr([*version, s]).encode()).hexdigest() for s in submissions}
    with suppress(OSError, ValueError):  # a torn last line is graded anew
        for line in kept.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if keys.get(record["student"]) == record.pop("key"):
                record["outcomes"] = {question: Outcome(**outcome) for question, outcome in record["outcomes"].items()}
                rows[record["student"]] = Marks(**record)
    jobs = [(s, lesson, tables[s.student], args.timeout, args.unsafe_draft) for s in submissions if s.student not in rows]
    with kept.open("w", encoding="utf-8") as file, _executor(args) as executor:
        for marks in chain(list(rows.values()), _as_done(executor, jobs)):
            rows[marks.student] = marks
            if marks.status != "error":
                file.write(json.dumps({"key": keys[marks.student], **asdict(marks)}) + "\n")
                file.flush()
    write(args.out, [rows[s.student] for s in submissions], lesson["questions"], by_hand, name)
    failed = sum(marks.status == "error" for marks in rows.values())
    if not failed:
        kept.unlink()
    if open_ones := [q["name"] for q in lesson["questions"] if q.get("by_hand")] if not args.manual else []:
        print(f"not in these marks: {', '.join(open_ones)}, to be marked by hand; --manual FILE adds them", file=sys.stderr)
    return _say(f"{failed} of {len(rows)} rows failed; run again", 1) if failed else 0


def _as_done(executor, jobs):
    """Marks as they come, under a progress bar; on an interrupt what has not begun is dropped."""
    from tqdm import tqdm
    futures = [executor.submit(grade_one, *job) for job in jobs]
    try:
        for future in tqdm(as_completed(futures), total=len(futures), unit="notebook", disable=None):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _executor(args):
    if not args.dask:
        return ThreadPoolExecutor(max(1, args.workers))
    from distributed import Client
    return Client(args.dask).get_executor()


def write(out, rows, questions, by_hand, lesson):
    """The CSV, and a page for each student in `<out>_feedback/`."""
    asked = [q for q in questions if not q.get("by_hand") or by_hand is not None]
    folder = out.with_name(f"{out.stem}_feedback")
    folder.mkdir(exist_ok=True)
    with out.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["student", "score", "max_score", *(q["name"] for q in asked), "status", "note"])
        for marks in rows:
            points = [_points(q, marks, by_hand) for q in asked]
            score, most = sum(p or 0 for p in points), sum(q["points"] for q in asked)
            cells = ["" if p is None else f"{p:g}" for p in points]
            student = f"'{marks.student}" if marks.student[0] in "=+-@" else marks.student  # a spreadsheet would take it for a formula
            table.writerow([student, f"{score:g}", f"{most:g}", *cells, marks.status, marks.note])
            page = _page(marks, asked, points, lesson, f"{score:g} of {most:g}")
            (folder / f"{marks.student}.html").write_text(page, encoding="utf-8", errors="replace")


def _points(question, marks, by_hand):
    if question.get("by_hand"):
        return by_hand.get((marks.student, question["name"]))
    return question["points"] if question["name"] in marks.outcomes and marks.outcomes[question["name"]].right else 0


def _page(marks, asked, points, lesson, score):
    lines = []
    for question, got in zip(asked, points, strict=True):
        outcome = marks.outcomes.get(question["name"])
        sentence = outcome.sentence if outcome else "Marked by hand." if question.get("by_hand") else "Not graded."
        got = "no mark yet" if got is None else f"{got:g} of {question['points']:g}"
        lines.append(f"<tr><td><code>{html.escape(question['name'])}</code><td>{got}<td>{html.escape(sentence)}")
    title = f"{html.escape(lesson)}: {html.escape(marks.student)}"
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            "<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
            f"td{{padding:.3em 1em .3em 0;vertical-align:top}}td:nth-child(2){{white-space:nowrap}}td:last-child{{overflow-wrap:anywhere}}"
            f"</style><h1>{title}</h1><p>{score} points. Status: {html.escape(marks.status)}. "
            f"{html.escape(marks.note)}</p><table>{''.join(lines)}</table></html>\n")


def _read_manual(path, students, questions):
    """{(student, question): mark} from a CSV, None without one; a ValueError that names the line at fault."""
    if not path:
        return None
    marks, most = {}, {q["name"]: q["points"] for q in questions if q.get("by_hand")}
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            student, question, mark = row.get("student"), row.get("question"), math.nan
            with suppress(ValueError, TypeError):
                mark = float(row.get("mark"))
            if student not in students or question not in most or not 0 <= mark <= most[question]:
                raise ValueError(f"{path}, line {number}: needs a student of this class, a question of {', '.join(most)} and a mark "
                                 f"from 0 to its points; got {student}, {question}, {row.get('mark')}")
            marks[student, question] = mark
    return marks


def _own_code():
    """A fingerprint of the grader and the library, so that an interrupted run is not taken up by another version."""
    files = sorted(Path(roofline_lib.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _say(text, code):
    print(text, file=sys.stderr)
    return code
