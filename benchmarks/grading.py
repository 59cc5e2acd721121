"""Submissions graded in a minute, by `python -m roofline_lib grade` and by nbgrader's autograde,
two workers each, on the same notebooks.

    python benchmarks/grading.py [--submissions 200] [--peer 200] [--workers 2] [--json FILE]

The class is mixed: right, partly right, wrong, untouched and failing notebooks, no endless ones.
nbgrader has no workers, so its share is split into as many courses with a gradebook each. `--peer`
gives nbgrader the first so many only; it takes seconds for each. Numbers depend on the machine; the
ratio is what counts. Needs the extra nbgrader.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/submissions"))
import generate  # noqa: E402

MIX = [
    "all_right",
    "partly_right",
    "edge_case_forgotten",
    "untouched",
    "public_checks_only",
    "through_helpers",
    "numpy_scalar",
    "syntax_error",
    "as_lambda",
    "text_for_number",
]


def ours(folder, students, workers):
    """Seconds that our command takes."""
    for student, book in students.items():
        (folder / "in").mkdir(exist_ok=True)
        (folder / "in" / f"{student}.ipynb").write_text(json.dumps(book), encoding="utf-8")
    start = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "roofline_lib",
            "grade",
            generate.LESSON,
            folder / "in",
            "--out",
            folder / "marks.csv",
            "--workers",
            str(workers),
        ],
        check=True,
    )
    return time.perf_counter() - start


def nbgrader(folder, students, workers):
    """Seconds that nbgrader takes, its assignment made beforehand."""
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    courses = [folder / f"course{i}" for i in range(workers)]
    for course in courses:
        shutil.copytree(ROOT / "solutions" / generate.LESSON, course / "source" / generate.LESSON)
        shutil.copy(ROOT / "solutions/nbgrader_config.py", course)
        subprocess.run(
            ["nbgrader", "generate_assignment", generate.LESSON],
            cwd=course,
            env=tools,
            check=True,
            capture_output=True,
        )
    released = json.loads(
        (courses[0] / "release" / generate.LESSON / f"{generate.LESSON}.ipynb").read_text(
            encoding="utf-8"
        )
    )
    metadata = {cell["id"]: cell["metadata"] for cell in released["cells"]}
    for i, (student, book) in enumerate(students.items()):
        cells = [
            {**cell, "metadata": metadata.get(cell["id"], cell["metadata"])}
            for cell in book["cells"]
        ]
        place = courses[i % workers] / "submitted" / student / generate.LESSON
        place.mkdir(parents=True)
        (place / f"{generate.LESSON}.ipynb").write_text(
            json.dumps({**book, "cells": cells}), encoding="utf-8"
        )
    start = time.perf_counter()
    running = [
        subprocess.Popen(
            ["nbgrader", "autograde", generate.LESSON],
            cwd=course,
            env=tools,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for course in courses
    ]
    with tqdm(total=len(students), unit="notebook", desc="nbgrader") as bar:
        while any(process.poll() is None for process in running):
            time.sleep(0.5)
            bar.update(sum(len(list(course.glob("autograded/*"))) for course in courses) - bar.n)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--peer", type=int, help="submissions for nbgrader (default: all)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    students = {
        f"student{i:03}": generate.KINDS[MIX[i % len(MIX)]][0] for i in range(args.submissions)
    }
    few = dict(list(students.items())[: args.peer])
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "ours": 60 * len(students) / ours(Path(folder), students, args.workers),
            "nbgrader": 60 * len(few) / nbgrader(Path(folder), few, args.workers),
        }
    figures["ratio"] = figures["ours"] / figures["nbgrader"]
    print(
        f"{args.workers} workers each, submissions a minute: ours {figures['ours']:.0f} ({len(students)} graded), "
        f"nbgrader {figures['nbgrader']:.1f} ({len(few)} graded): {figures['ratio']:.0f} times as many"
    )
    if args.json:
        record = {
            "workers": args.workers,
            "submissions": len(students),
            "peer": len(few),
            **figures,
        }
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
