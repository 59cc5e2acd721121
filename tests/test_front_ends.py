"""What other people's services do with the repository: Binder's last step, the addresses that
docs/front_ends.md gives, the copies that the pages' workflow publishes."""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from harness.repository import ROOT, run, tracked

from roofline_lib.course.lessons import lessons

PAGE = (ROOT / "docs" / "front_ends.md").read_text(encoding="utf-8")
FIRST = lessons()[0].file


def address(host):
    """The page's address on this host: its path, and its query as a dict of single values."""
    parts = urlsplit(re.search(rf"^https://{re.escape(host)}/\S*", PAGE, re.M)[0])
    query = parse_qs(parts.query, strict_parsing=True)
    return parts.path, {name: value for name, (value,) in query.items()}


@pytest.fixture(scope="module")
def cloned(tmp_path_factory):
    """A clone of what Binder's last step needs."""
    folder = tmp_path_factory.mktemp("clone") / "REPOSITORY"
    for path in tracked("postBuild", "roofline_lib", "notebooks", "exercises"):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return folder


def test_binder_opens_the_copy_that_its_last_step_makes(cloned):
    """As repo2docker does it: marked executable, then run in the repository's folder."""
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (cloned / "postBuild").chmod(0o755)
    done = run("./postBuild", cwd=cloned, env=here | {"PYTHONPATH": str(cloned)})
    assert done.returncode == 0, done.stderr
    path, query = address("mybinder.org")
    assert re.fullmatch(r"/v2/gh/[^/]+/[^/]+/[^/]+", path)
    opened = cloned / query["urlpath"].removeprefix("lab/tree/")
    cells = json.loads(opened.read_text(encoding="utf-8"))["cells"]
    assert opened.name == FIRST and not any(cell.get("outputs") for cell in cells)


def test_nbgitpuller_opens_a_lesson_of_what_it_clones():
    """Its handler clones into the last part of `repo`, and goes to `urlpath` as it stands."""
    path, query = address("HUB")
    assert path == "/hub/user-redirect/git-pull"
    assert query.keys() == {"repo", "branch", "urlpath"}
    clone = query["repo"].rstrip("/").split("/")[-1]
    place = query["urlpath"].removeprefix(f"lab/tree/{clone}/")
    assert place == f"notebooks/{FIRST}" and (ROOT / place).is_file()


def test_the_workflow_publishes_copies_that_find_their_wheel(tmp_path):
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text())
    (script,) = [
        step["run"]
        for step in steps["jobs"]["build"]["steps"]
        if "hosted_copies" in step.get("run", "")
    ]
    wheel = tmp_path / "site/_build/html/lite/static/packages/roofline_lib-9.9-py3-none-any.whl"
    python = tmp_path / ".venv-site" / "bin" / "python"
    for path in (wheel, python):
        path.parent.mkdir(parents=True)
    wheel.touch()
    python.symlink_to(sys.executable)
    for name in ("tools", "roofline_lib"):
        (tmp_path / name).symlink_to(ROOT / name)
    known = os.environ | {"GITHUB_REPOSITORY_OWNER": "owner", "GITHUB_REPOSITORY": "owner/course"}
    done = run("sh", "-e", "-c", script, cwd=tmp_path, env=known)
    assert done.returncode == 0, done.stderr
    copy = tmp_path / "site" / "_build" / "html" / "hosted" / "notebooks" / FIRST
    install = "".join(json.loads(copy.read_text(encoding="utf-8"))["cells"][1]["source"])
    place = wheel.relative_to(tmp_path / "site" / "_build" / "html").as_posix()
    assert f'"https://owner.github.io/course/{place}"' in install
