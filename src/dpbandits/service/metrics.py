"""Prometheus metrics. By default only what everybody may know.

Those for the operator alone count rewards, or follow them in time: requests by route and status, and
how long they took. They are off unless asked for, and never shown without a key. Nothing is counted by
action where actions are private, and rewards are never counted by experiment.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric

from dpbandits.version import __version__

if TYPE_CHECKING:
    from dpbandits.service.service import Service

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """What is public, read off the experiments when it is asked for; and the operator's own counts."""

    def __init__(self, service: "Service", *, operator: bool) -> None:
        self.operator = operator
        self._public, self._all = CollectorRegistry(), CollectorRegistry()
        for registry in (self._public, self._all):
            registry.register(_Public(service))
        self.requests = Counter(
            "dpbandits_requests", "Answered requests.", ["route", "status"], registry=self._all
        )
        self.seconds = Histogram(
            "dpbandits_request_seconds",
            "From a request's arrival to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self._all,
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """One request, if the operator wants to know."""
        if self.operator:
            self.requests.labels(route, status).inc()
            self.seconds.labels(route).observe(seconds)

    def page(self, *, for_operator: bool) -> bytes:
        """As Prometheus reads it."""
        return bytes(generate_latest(self._all if for_operator and self.operator else self._public))


class _Public:
    """Counts of decisions and of time, as of the last commit."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        writer = self._service.writer
        yield GaugeMetricFamily("dpbandits_ready", "Whether it decides.", value=writer.is_ready)
        yield InfoMetricFamily("dpbandits", "Which version runs.", value={"version": __version__})
        helps = {
            "decisions": "Decisions made.",
            "closed_rounds": "Rounds closed.",
            "open_rounds": "Rounds open.",
            "rounds_left": "Rounds left of the horizon.",
            "generation": "How often the log was folded.",
        }
        found = {
            name: GaugeMetricFamily(f"dpbandits_{name}", text, labels=["experiment"])
            for name, text in helps.items()
        }
        for one in writer.running.values():
            decided, closed = one.counts
            values = {"decisions": decided, "closed_rounds": closed, "open_rounds": decided - closed}
            values["generation"] = one.generation
            if one.terms.problem.horizon is not None:
                values["rounds_left"] = max(one.terms.problem.horizon - decided, 0)
            for name, value in values.items():
                found[name].add_metric([one.terms.name], value)
        yield from found.values()
