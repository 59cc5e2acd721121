"""What pyproject.toml cannot say: a wheel carries the lessons, and what they link to, although it
stands outside the package. Its place there is roofline_lib/course/files."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
CARRIED = ("notebooks/*.ipynb", "exercises/*/*.ipynb", "solutions/*/*.ipynb", "docs/*.*")


class BuildWithLessons(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:  # an editable library finds them in its checkout
            for source, copy in self._carried():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)

    def _carried(self):
        files = Path(self.build_lib) / "roofline_lib" / "course" / "files"
        for pattern in CARRIED:
            for source in sorted(ROOT.glob(pattern)):
                yield source, files / source.relative_to(ROOT)

    def get_outputs(self, include_bytecode=1):
        return super().get_outputs(include_bytecode) + [str(copy) for _, copy in self._carried()]


setup(cmdclass={"build_py": BuildWithLessons})
