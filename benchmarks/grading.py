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
LESSON = "01_arithmetic_intensity"
SIGNATURE = "def product_flops(m, n, k):\n    "
# other ways to hand in one of the functions
ANSWERS = [
    SIGNATURE + "return m * n * k",
    SIGNATURE + "return max(2 * m * n * k, 1)",
    SIGNATURE + "return str(2 * m * n * k)",
    SIGNATURE + "return 2 * (m * n * k",
    SIGNATURE + "return ...",
    SIGNATURE + "return 1 / 0",
    "import numpy as np\n\n" + SIGNATURE + "return np.float64(2) * m * n * k",
    "product_flops = lambda m, n, k: 2 * m * n * k",
]


def a_class(size):
    """{student: notebook}: the solution, the untouched exercise, and the solution with another
    answer to its first question, in turn."""
    solved, untouched = (
        json.loads((ROOT / kind / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
        for kind in ("solutions", "exercises")
    )
    books = [solved, untouched, *(with_answer(solved, answer) for answer in ANSWERS)]
    return {f"student{i:03}": books[i % len(books)] for i in range(size)}


def with_answer(book, answer):
    cells = [
        {**cell, "source": answer} if cell["id"] == "product_flops" else cell
        for cell in book["cells"]
    ]
    return {**book, "cells": cells}


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
            LESSON,
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
        shutil.copytree(ROOT / "solutions" / LESSON, course / "source" / LESSON)
        shutil.copy(ROOT / "solutions/nbgrader_config.py", course)
        subprocess.run(
            ["nbgrader", "generate_assignment", LESSON],
            cwd=course,
            env=tools,
            check=True,
            capture_output=True,
        )
    released = json.loads(
        (courses[0] / "release" / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8")
    )
    metadata = {cell["id"]: cell["metadata"] for cell in released["cells"]}
    for i, (student, book) in enumerate(students.items()):
        cells = [
            {**cell, "metadata": metadata.get(cell["id"], cell["metadata"])}
            for cell in book["cells"]
        ]
        place = courses[i % workers] / "submitted" / student / LESSON
        place.mkdir(parents=True)
        (place / f"{LESSON}.ipynb").write_text(
            json.dumps({**book, "cells": cells}), encoding="utf-8"
        )
    start = time.perf_counter()
    running = [
        subprocess.Popen(
            ["nbgrader", "autograde", LESSON],
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
    students = a_class(args.submissions)
    few = dict(list(students.items())[: args.peer])
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "ours": 60 * len(students) / ours(Path(folder), students, args.workers),
            "nbgrader": 60 * len(few) / nbgrader(Path(folder), few, args.workers),
        }
    figures["ratio"] = figures["ours"] / figures["nbgrader"]
    print(
        f"{args.workers} workers each, submissions a minute: "
        f"ours {figures['ours']:.0f} ({len(students)} graded), "
        f"nbgrader {figures['nbgrader']:.1f} ({len(few)} graded): "
        f"{figures['ratio']:.0f} times as many"
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
