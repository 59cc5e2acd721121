"""Whole models: wrong answers as students give them."""

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("models.users", 3, "heads-not-kv-heads"),
    ("models.users", 55, "forgot-weights"),
    ("models.users", 59, "keys-only"),
    ("models.users", 30, "round-down"),
    ("models.forecast", "2 ms", "forgot-launches"),
    ("models.forecast", "1.5 ms", "launches-alone"),
    ("models.small", "int4 weights", "not-the-limit"),
    ("models.small", "twice the bandwidth", "not-the-limit"),
    ("models.latency", "525 ms", "one-gap-too-many"),
    ("models.latency", "200 ms", "forgot-first-token"),
    ("models.latency", "225 ms", "forgot-first-token"),
    ("models.cost", 18, "one-user"),
    ("models.cost", 0.1875, "one-card"),
]
