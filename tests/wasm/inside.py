"""Runs inside the WebAssembly Python: the numeric tests, or every cell of the lessons against what
they store. Prints a line of JSON for each difference. Used by run.py.

    inside.py tests FILE ...
    inside.py lessons NOTEBOOK ...
"""

import ast
import contextlib
import io
import json
import linecache
import os
import sys
import traceback
import types
import warnings
from pathlib import Path

TIMED = "nbval-ignore-output"


class Failures:
    """A plugin of pytest that keeps the names of the tests, and of the files, that fail."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.found[report.nodeid] = report.longreprtext[-600:]

    pytest_collectreport = pytest_runtest_logreport


def run_tests(files):
    import pytest

    off = ["cacheprovider", "faulthandler", "logging", "nbval"]
    options = [word for name in off for word in ("-p", f"no:{name}")]
    failures = Failures()
    shown = ["--capture=sys", "-q", "--tb=no"]
    code = pytest.main([*options, *shown, *files], plugins=[failures])
    for name, error in failures.found.items():
        print(json.dumps({"test": name, "error": error}), flush=True)
    return code


def shown(value):
    """What a notebook would show of the value of a cell's last line; nothing for None, and for
    what shows itself."""
    if hasattr(value, "_ipython_display_"):
        with contextlib.suppress(NotImplementedError):
            value._ipython_display_()
            return []
    return [] if value is None else [repr(value)]


def run_cell(source, name, names):
    """(what a cell printed, what it shows, its error)."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    printed, value, error = io.StringIO(), None, None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            tree = ast.parse(source)
            is_value = tree.body and isinstance(tree.body[-1], ast.Expr)
            last = tree.body.pop() if is_value else None
            exec(compile(tree, name, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if hasattr(value, "_repr_mimebundle_"):
                value._repr_mimebundle_()
        except BaseException as why:
            error = "".join(traceback.format_exception(why)[-2:])
    return printed.getvalue(), shown(value), error


def stored_of(cell):
    """What a cell's stored outputs print, and show as its value."""
    printed = [output["text"] for output in cell["outputs"] if output["output_type"] == "stream"]
    values = [
        output["data"]["text/plain"]
        for output in cell["outputs"]
        if output["output_type"] == "execute_result"
    ]
    return "".join("".join(text) for text in printed), ["".join(text) for text in values]


def run_lesson(path):
    """Prints the differences of one lesson, then how many cells it has."""
    import matplotlib.pyplot as plt

    plt.show = lambda *_, **__: plt.close("all")
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    for cell in codes:
        printed, value, error = run_cell("".join(cell["source"]), cell["id"], vars(module))
        plt.close("all")
        wanted = stored_of(cell)
        is_timed = TIMED in cell["metadata"].get("tags", [])
        row = {"lesson": Path(path).stem, "cell": cell["id"]}
        if error:
            row["error"] = error[-600:]
        elif not is_timed and (printed, value) != wanted:
            row |= {"stored": wanted, "here": (printed, value)}
        if len(row) > 2:
            print(json.dumps(row), flush=True)
    print(json.dumps({"lesson": Path(path).stem, "cells": len(codes)}), flush=True)


if __name__ == "__main__":
    os.chdir("/repo")
    os.environ["MPLBACKEND"] = "agg"
    what, *files = sys.argv[1:]
    if what == "tests":
        raise SystemExit(run_tests(files))
    for file in files:
        run_lesson(file)
