"""Tests of privacy that can fail: exact replay of releases, and policies that are wrong on purpose."""

from dpbandits.audit.broken import BROKEN
from dpbandits.audit.replay import Replay, replay
from dpbandits.audit.reports import report_cost

__all__ = ["BROKEN", "Replay", "replay", "report_cost"]
