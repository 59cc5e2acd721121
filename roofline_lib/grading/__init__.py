"""Marks that cannot be forged: answers come out of the sandbox, the key never goes in.
docs/teaching.md tells how to use it.

`grade` grades a class; `marked` is what a solution notebook says of each marked question.
"""

from roofline_lib.grading.batch import grade
from roofline_lib.grading.draw import marked
from roofline_lib.grading.sandbox import Broken, NoSandbox

__all__ = ["Broken", "NoSandbox", "grade", "marked"]
