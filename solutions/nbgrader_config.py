"""For a school that runs nbgrader: copy this file into the course folder and solutions/<lesson>/
into source/<lesson>/."""

c = get_config()  # noqa: F821  nbgrader defines it
c.ClearSolutions.code_stub = {"python": "return ...  # your answer"}
c.ClearSolutions.text_stub = "*Your answer.*"
