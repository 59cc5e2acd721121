"""hypothesis draws the same examples in each `make test`, so that a red run means a changed
library; `make test-all` draws new ones."""

import os

from hypothesis import settings

settings.register_profile("every-change", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("long", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "every-change"))
