"""Pictures with controls: one module for each lesson's explorer, made from the same parts (`base`,
`scenes`, `marks`, `shapes`, `stage`, `controls`).

`EXPLORERS` lists all that the public face names; reading it imports neither matplotlib nor
ipywidgets.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from roofline_lib import _HOME

if TYPE_CHECKING:
    from roofline_lib.explorers.base import Explorer


@dataclass(frozen=True)
class Listing:
    """Where an explorer's class stands."""

    name: str
    module: str

    def load(self) -> "type[Explorer]":
        """The class. Its module is imported now, and matplotlib and ipywidgets with it."""
        return getattr(import_module(f"roofline_lib.{self.module}"), self.name)

    def call(self) -> str:
        """The line of Python that makes the class's sample, with the library imported as `rl`."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.load().sample.items())
        return f"rl.{self.name}({given})"


EXPLORERS: dict[str, Listing] = {
    name: Listing(name, module) for name, module in _HOME.items() if module.startswith("explorers.")
}
