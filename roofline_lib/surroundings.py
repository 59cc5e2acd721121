"""What surrounds this Python, where that decides what can work."""

import sys


def in_browser() -> bool:
    """Whether this Python is WebAssembly, as in a browser's page: one thread, no processes, no
    BLAS, and a machine that it cannot see."""
    return sys.platform in ("emscripten", "wasi")
