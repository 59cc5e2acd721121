"""More than one chip: wrong answers as students give them."""

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("chips.gather", "1.944 ms", "both-ways"),
    ("chips.gather", "4.444 ms", "own-shard"),
    ("chips.gather", "7.778 ms", "all-reduce-for-half"),
    ("chips.waits", "0.576 ms", "once-a-layer"),
    ("chips.waits", "2.304 ms", "wait-of-message"),
    ("chips.tokens", 10000, "own-shard"),
    ("chips.tokens", 1172, "bits-for-bytes"),
    ("chips.helps", "a link of twice the bandwidth", "not-the-limit"),
    ("chips.helps", "memory a quarter faster", "not-the-limit"),
]
