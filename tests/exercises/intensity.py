"""Intensity: wrong answers as students give them."""

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("intensity.add-fp16", "0.25 FLOP/byte", "forgot-c"),
    ("intensity.add-fp16", "0.08333 FLOP/byte", "wrong-width"),
    ("intensity.add-fp16", "0.3333 FLOP/byte", "elements-not-bytes"),
    ("intensity.gemm-flops", "1.074 GFLOP", "mac-is-flop"),
    ("intensity.gemm-bytes", "8.389 MB", "forgot-c"),
    ("intensity.gemm-bytes", "16.78 MB", "read-c"),
    ("intensity.gemm-bytes", "3.146 MB", "elements-not-bytes"),
    ("intensity.gemm-bytes", "6.291 MB", "wrong-width"),
    ("intensity.gemm-bytes", "8590 MB", "no-reuse-is-best"),
    ("intensity.linear-layer", "512 FLOP/byte", "rule-for-exact"),
    ("intensity.linear-layer", "341.3 FLOP/byte", "forgot-c"),
    ("intensity.linear-layer", "292.6 FLOP/byte", "read-c"),
    ("intensity.linear-layer", "157.5 FLOP/byte", "wrong-width or mac-is-flop"),
    ("intensity.linear-layer", "630.2 FLOP/byte", "elements-not-bytes"),
    ("intensity.too-good", "excellent kernel", "no-reuse-is-best"),
    ("intensity.x-gemv", "0.4998 FLOP/byte", "mac-is-flop or wrong-width"),
    ("intensity.x-levels", 1024, "read-c"),
    ("intensity.x-levels", 2049, "forgot-c"),
    ("intensity.x-weights", "67.11 MB", "elements-not-bytes"),
    ("intensity.x-weights", "268.4 MB", "wrong-width"),
    ("intensity.x-macs", "68.72 GFLOP", "mac-is-flop"),
]
