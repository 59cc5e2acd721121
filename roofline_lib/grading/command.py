"""`python -m roofline_lib grade`: a class's notebooks in, a CSV of marks and a page for each
student out."""

import argparse
import signal
import threading
from pathlib import Path

from roofline_lib.grading.batch import grade, processors, remark
from roofline_lib.grading.lateness import PERCENT_A_DAY
from roofline_lib.grading.sandbox import Broken, NoSandbox

EXITS = """exit codes: 0 every notebook graded, or not there or not readable, as its row says; 1 the
grader itself failed on some rows (status "error"): run again; 2 the command or a file it names is
wrong; 3 no sandbox on this machine; 4 the solution does not run; 130 interrupted: the same command
goes on where it stopped"""


def main(argv=None):
    """Parse the command line, grade, and give the exit code."""
    args = _parser().parse_args(argv)
    _end_like_an_interrupt()
    try:
        rows = grade(**vars(args))
    except NoSandbox as error:
        return _fail(error, 3)
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else error, 2)
    except ValueError as error:
        return _fail(error, 2)
    except Broken:
        return _fail(
            "nothing was graded; "
            "what stands above is what the solution notebook ended with in the sandbox",
            4,
        )
    except KeyboardInterrupt:
        return _fail("interrupted; the same command goes on from here", 130)
    failed = sum(row.status == "error" for row in rows)
    return _fail(f"{failed} of {len(rows)} rows failed; run again", 1) if failed else 0


def _end_like_an_interrupt():
    """A terminal that closes or a system that shuts down ends the command as Ctrl-C does: with what
    is done written down and nothing left in the temporary folder."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
            signal.signal(getattr(signal, name), signal.default_int_handler)


def _parser():
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
        help="CSV with student,question,mark for what is marked by hand, and perhaps comment",
    )
    parser.add_argument(
        "--late-days", type=Path, metavar="FILE", help="CSV with student,days for who was late"
    )
    parser.add_argument(
        "--late-percent",
        type=float,
        default=PERCENT_A_DAY,
        metavar="P",
        help="percent of the points that a late day costs (%(default)s)",
    )
    parser.add_argument(
        "--gradebook",
        type=Path,
        metavar="FILE",
        help="a gradebook exported from Canvas, or a grading worksheet or grades from Moodle: "
        "<out>_canvas.csv or <out>_moodle.csv is the same with these marks, to import there",
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
        metavar="N",
        help=f"submissions at a time ({processors()}, a processor each)",
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="use the workers of this Dask cluster instead"
    )
    parser.add_argument(
        "--unsafe-draft",
        action="store_true",
        help="without a sandbox: the notebooks run as you. Written into the CSV",
    )
    return parser


def _at_least_one(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"needs a whole number, at least 1; got {text}")
    return int(text)


def _fail(text, code):
    remark(str(text))
    return code
