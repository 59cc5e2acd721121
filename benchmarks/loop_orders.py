"""How much the wrong loop order costs in C, with rows a power of two apart and not (lesson 4).

    python benchmarks/loop_orders.py

Needs a C compiler, `cc`. Prints i,j,k over i,k,j for three layouts, all from this one run.
"""

import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("loop_orders.c")
LAYOUTS = ((512, 512), (1024, 1024), (1024, 1040))  # n, numbers from row to row


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loop_orders"
        subprocess.run(["cc", "-O2", "-o", program, SOURCE], check=True)
        for n, pitch in LAYOUTS:
            run = subprocess.run(
                [program, str(n), str(pitch)], check=True, capture_output=True, text=True
            )
            down, along = map(float, run.stdout.split())
            print(
                f"n = {n}, rows {pitch} numbers apart: i,j,k {1e3 * down:.0f} ms, "
                f"i,k,j {1e3 * along:.0f} ms, {down / along:.1f} times"
            )


if __name__ == "__main__":
    main()
