"""What runs inside the sandbox. These files are all of the grader that student code can see, and
they import nothing else of it.

A notebook that is being judged runs in the same interpreter as these files and may patch whatever
it can reach: builtins, json, os. No key is there to be stolen, and each question has a process of
its own, so that a patch harms only the answer that it stands beside. Where a line binds a function
earlier than it needs to, it keeps right answers safe from such a patch.
"""
