"""What runs inside the sandbox. These files are all of the grader that student code can see, and
they import nothing else of it."""
