"""Start: wrong answers as students give them."""

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("start.bytes", "1 MB", "elements-not-bytes"),
    ("start.bytes", "32 MB", "bits-for-bytes"),
    ("start.bytes", "2 MB", "wrong-width"),
]
