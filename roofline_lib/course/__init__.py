"""What a learner's start needs: the list of lessons, copies of them to work on, and JupyterLab's
settings. `python -m roofline_lib course` puts these together."""
