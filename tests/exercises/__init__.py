"""What only the exercises know of a topic, one module each.

WRONG_ANSWERS: wrong functions as students write them, by the name of the function asked for; those
of a question's own slips join them. LESSON and shown_in_the_text(f): what the text of that lesson's
solution must hold, computed with its functions f.
"""
