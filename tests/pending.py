"""What does not keep a new rule yet, one line each: take your lines off. Empty, this file goes."""

# questions whose two likeliest wrong answers are not named yet
FEW_SLIPS = {
    "chains.right-flops",
    "chains.across",
    "chains.best",
    "chains.strassen",
    "chains.x-lora",
    "chains.x-again",
    "chains.x-strassen",
    "chains.x-affine",
    "chains.x-two-orders",
    "chains.x-merge-from",
    "chains.x-fewest-bytes",
    "chains.x-strassen-from",
    "measured.efficiency",
    "measured.waves",
    "measured.bytes",
    "measured.chains",
    "measured.above",
    "measured.x-repeats",
    "measured.x-at-its-clock",
    "measured.x-floor",
    "measured.x-stranger",
    "measured.x-shortest",
    "measured.x-speed-up",
    "measured.x-tile-behind",
    "measured.x-fewest-lists",
}

# lessons that do not keep a rule of tools/notebook_rules.py yet
LESSONS = {
    "used": {
        "chain_ordering",
        "measured",
    },
    "narrow": {
        "chain_ordering",
        "measured",
    },
    "short": {
        "chain_ordering",
        "measured",
    },
    "described": {
        "measured",
    },
}

# the same of exercises
EXERCISES = {
    "timed": {
        "chain_ordering",
        "measured",
    },
    "led_on": {
        "chain_ordering",
        "measured",
    },
    "narrow": {
        "chain_ordering",
    },
}
