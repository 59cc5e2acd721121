"""What only the exercises know of a topic, one module each.

WRONG_ANSWERS: wrong functions as students write them, by the name of the function asked for; those
of a question's own slips join them. WRONG_VALUES: rows of a question, a wrong answer to it, and the
slip that the check names ("forgot-c or read-c" where both fit). FEWER: questions with no two wrong
answers that are likely and have a name, each with the reason. LESSON and shown_in_the_text(f): what
the text of that lesson's solution must hold, computed with its functions f.
"""
