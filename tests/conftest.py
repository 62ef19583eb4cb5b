"""What all tests share: one profile for Hypothesis, one precision for reference values."""

from datetime import timedelta

import mpmath
from hypothesis import settings

# Long enough for a busy machine, short enough to notice what has become slow. Tests whose first call
# compiles say `deadline=None` themselves.
settings.register_profile("dpbandits", deadline=timedelta(seconds=2), print_blob=True)
settings.load_profile("dpbandits")

mpmath.mp.dps = 60
