"""The words in which a row of test_border.py says what an argument is: its unit and its kind.

A row is (function, good arguments, {argument: "unit kind"}). It stands in CALLS of test_border.py
or, beside the function's other tests, in a list BORDER of a module that test_border.py collects.
"""

ELEMENTS, HEADS = "elements size", "heads size"
BATCH, TOKENS = "sequences size", "tokens size"
