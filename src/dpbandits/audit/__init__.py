"""Tests of privacy that can fail: exact replay of releases, sampling of real runs, and controls."""

from dpbandits.audit.broken import BROKEN
from dpbandits.audit.messages import report_cost
from dpbandits.audit.replay import Replay, replay
from dpbandits.audit.sampling import Sampled, sample

__all__ = ["BROKEN", "Replay", "Sampled", "replay", "report_cost", "sample"]
