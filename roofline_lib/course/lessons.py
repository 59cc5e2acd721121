"""The list of lessons: what stands in `lessons.toml`, as records."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("lessons.toml")


@dataclass(frozen=True)
class Lesson:
    """One lesson; `number` is its place in the list and `minutes` the time that it asks for."""

    number: int
    name: str
    title: str
    question: str
    minutes: int

    @property
    def stem(self) -> str:
        """The name of the lesson's notebook without `.ipynb`, and of its folder of exercises."""
        return f"{self.number:02}_{self.name}"

    @property
    def file(self) -> str:
        """The name of the lesson's notebook."""
        return f"{self.stem}.ipynb"


def lessons(table: Path = TABLE) -> list[Lesson]:
    """All lessons in their order, as the file `table` lists them."""
    rows = tomllib.loads(table.read_text(encoding="utf-8"))["lesson"]
    return [Lesson(number, **row) for number, row in enumerate(rows)]
