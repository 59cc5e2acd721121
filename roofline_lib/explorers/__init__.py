"""Pictures with controls: one module for each lesson's explorer, made from the same parts (`base`,
`scenes`, `marks`, `shapes`, `stage`, `controls`).

`EXPLORERS` lists them all; reading it imports neither matplotlib nor ipywidgets.
"""

from dataclasses import dataclass, field
from importlib import import_module


@dataclass(frozen=True)
class Listing:
    """Where an explorer's class stands, and arguments that show what it is for."""

    name: str
    module: str
    sample: dict[str, object] = field(default_factory=dict)

    def load(self) -> type:
        """The class. Its module is imported now, and matplotlib and ipywidgets with it."""
        return getattr(import_module(f"roofline_lib.explorers.{self.module}"), self.name)

    def call(self) -> str:
        """The line of Python that makes the sample, with the library imported as `rl`."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.sample.items())
        return f"rl.{self.name}({given})"


_LISTINGS = (
    Listing(
        "GemmExplorer",
        "gemm",
        {"machine": "A100 40GB SXM", "m": 64, "n": 4096, "k": 4096, "precision": "bf16"},
    ),
    Listing("TilingExplorer", "tiling", {"machine": "house chip", "m": 4096, "n": 4096, "k": 4096}),
    Listing("DecodeExplorer", "decode", {"model": "llama-2-7b", "batch": 16}),
    Listing("ChainExplorer", "chain", {"dims": (4096, 64, 4096, 64, 1)}),
    Listing("PeakExplorer", "peak"),
    Listing("MeasuredExplorer", "measured"),
    Listing("OperatorExplorer", "operator"),
    Listing("TrainingExplorer", "training"),
    Listing("ServingExplorer", "serving", {"model": "llama-3-8b", "machine": "H200 SXM"}),
    Listing("ParallelExplorer", "parallel", {"model": "llama-3-70b", "tensor": 8}),
)
EXPLORERS: dict[str, Listing] = {listing.name: listing for listing in _LISTINGS}
