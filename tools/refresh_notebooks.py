"""Run notebooks from top to bottom and store their outputs so that an unchanged rerun gives an
empty diff.

    python tools/refresh_notebooks.py                      every lesson in notebooks/
    python tools/refresh_notebooks.py notebooks/03*.ipynb  these

A notebook in which a cell fails is left as it was. What is kept beside the cells' sources and
outputs: in a cell's metadata `tags` (nbval's), `given` (numbers that the prose takes as inputs),
`alt` (what its picture shows, in words), `jupyter` (source_hidden, nothing else), `nbgrader` and
`slideshow` (tools/slides.py writes it); in the notebook's the kernel's name and `given`. Cells
tagged nbval-ignore-output print timings, which no two runs share: they keep the output that they
have; clear it to time them anew.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parents[1]
CELL_METADATA = {"tags", "given", "alt", "jupyter", "nbgrader", "slideshow"}
# the one view setting that is a lesson's own
SOURCE_HIDDEN = {"source_hidden": True}
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "name": "python3"},
    "language_info": {"name": "python"},
}
# without a kernel it shows "model not found" and hides the PNG
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
TIMED = "nbval-ignore-output"


def refreshed(text, folder, timeout=120):
    """The notebook with this JSON text, run in this folder: its new JSON text."""
    before = nbformat.reads(text, as_version=4)
    timed = {
        cell.id: cell.outputs
        for cell in code_cells(before)
        if TIMED in cell.metadata.get("tags", ()) and cell.outputs
    }
    notebook = cleaned(before)
    NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    for cell in code_cells(notebook):
        cell.outputs = timed.get(cell.id, joined(cell.outputs))
        for output in cell.outputs:
            output.get("data", {}).pop(WIDGET_VIEW, None)
    notebook.metadata = metadata_of(notebook)  # nbclient wrote the interpreter's version into it
    return nbformat.writes(notebook) + "\n"  # nbformat sorts the keys


def joined(outputs):
    """The outputs with what a cell prints in one piece: a kernel sends it in as many as its own
    clock falls into."""
    result = []
    for output in outputs:
        if (
            result
            and output.output_type == result[-1].output_type == "stream"
            and output.name == result[-1].name
        ):
            result[-1].text += output.text
        else:
            result.append(output)
    return result


def cleaned(notebook):
    """The same notebook in format 4.5, without outputs and with the kept metadata only."""
    if notebook.nbformat_minor < 5:
        notebook = nbformat.convert(notebook, 4)
        notebook.nbformat_minor = 5
    notebook.metadata = metadata_of(notebook)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {
                key: value
                for key, value in cell.metadata.items()
                if key in CELL_METADATA and (key != "jupyter" or value == SOURCE_HIDDEN)
            }
        )
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    return notebook


def metadata_of(notebook):
    given = {"given": notebook.metadata.given} if "given" in notebook.metadata else {}
    return nbformat.from_dict(NOTEBOOK_METADATA | given)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def main(paths):
    failed = False
    for path in paths or sorted((ROOT / "notebooks").glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        try:
            after = refreshed(before, path.parent)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            print(f"{path}: left as it was\n{error}", file=sys.stderr)
            failed = True
            continue
        print(f"{path}: {'unchanged' if after == before else 'stored'}")
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; none: every lesson")
    sys.exit(main(parser.parse_args().paths))
