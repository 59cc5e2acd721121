"""Pictures with controls: one module for each lesson's explorer, on the common stage, controls and base."""

from roofline_lib.explorers.gemm import GemmExplorer

__all__ = ["GemmExplorer"]
