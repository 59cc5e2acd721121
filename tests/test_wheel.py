"""The wheel holds the data and gives the same figures where the repository is not."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

from harness.repository import ROOT, run, tracked

FIGURES = """
import json, roofline_lib as rl
chips = [rl.machine(name) for name in rl.machines()]
peaks = [[p, [peak.flops for peak in rows]] for chip in chips for p, rows in chip.peaks.items()]
ridges = [[chip.name, p, chip.ridge_point(p)] for chip in chips for p in chip.peaks]
models = {name: rl.transformer(name).parameters for name in rl.transformers()}
intensity = rl.gemm(4096, 4096, 64, "bf16").intensity
print(json.dumps([rl.__file__, [peaks, ridges, models, intensity]]))
"""


def test_a_wheel_gives_the_same_figures_outside_the_tree(tmp_path):
    tree, target = tmp_path / "tree", tmp_path / "installed"
    for path in tracked("pyproject.toml", "README.md", "LICENSE", "roofline_lib"):
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
    built = run(sys.executable, "-m", "pip", "wheel", *options, tree)
    assert built.returncode == 0, built.stderr[-3000:]
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(target)
    ours = {str(path.relative_to(ROOT)) for path in tracked("roofline_lib")}
    assert ours <= {str(path.relative_to(target)) for path in target.rglob("*")}

    def figures(place):
        result = run(sys.executable, "-c", FIGURES, cwd=tmp_path, env={"PYTHONPATH": str(place)})
        assert result.returncode == 0, result.stderr
        file, values = json.loads(result.stdout)
        assert Path(file).is_relative_to(place)
        return values

    assert figures(target) == figures(ROOT)
