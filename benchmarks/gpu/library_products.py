"""Square products through torch, for counters.py to run under ncu: what the vendor's kernels move.
One line of JSON each on stdout."""

import json
import sys

from roofline_lib.measuring.cuda import Torch

lib = Torch()
for _ in range(int(sys.argv[1])):
    for precision in ("bf16", "fp8", "tf32", "fp32"):
        for n in (4096, 8192):
            a, b, c = (
                lib.random((n, n), precision),
                lib.random((n, n), precision),
                lib.empty((n, n), precision),
            )
            lib.product(a, b.T, c, precision)()
            lib.torch.cuda.synchronize()
            print(
                json.dumps(
                    {
                        "kernel": "library",
                        "precision": precision,
                        "n": n,
                        "tile": None,
                        "loads": "library",
                        "threads": "library",
                    }
                )
            )
