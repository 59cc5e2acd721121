"""Questions on the start: how large numbers are."""

import roofline_lib as rl
from roofline_lib.checks import NumberQuestion

QUESTIONS = [
    NumberQuestion(
        "start.bytes",
        "How many bytes do a million fp32 numbers take?",
        unit="MB",
        reference=lambda: 1e6 * rl.bytes_per_element("fp32"),
        slips=[
            ("elements-not-bytes", lambda: 1e6),
            ("bits-for-bytes", lambda: 8 * 1e6 * rl.bytes_per_element("fp32")),
            ("wrong-width", lambda: 1e6 * rl.bytes_per_element("bf16")),
        ],
        hint="32 bits are 4 bytes.",
    ),
]
