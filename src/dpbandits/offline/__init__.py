"""What a policy would have done on a log: replay by rejection, and off-policy estimates.

All of it is made of raw data, and is for those who may see the log: nothing here is a private release.
"""

from dpbandits.offline.estimates import Estimate, doubly_robust, ips, ridge_model, snips
from dpbandits.offline.replay import Replayed, replay
from dpbandits.offline.rows import Rows, read

__all__ = [
    "Estimate",
    "Replayed",
    "Rows",
    "doubly_robust",
    "ips",
    "read",
    "replay",
    "ridge_model",
    "snips",
]
