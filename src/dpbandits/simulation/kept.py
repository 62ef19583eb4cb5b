"""The reward that policies of a trace keep, by budget."""

from typing import TYPE_CHECKING, Any

from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.reports.kept import Kept
from dpbandits.worlds import Environment

if TYPE_CHECKING:
    from dpbandits.simulation.trace import Trace


def reward_kept(trace: "Trace") -> Kept:
    """Shares of the best action's reward: of private policies by budget, of others, of uniform play."""
    if (uniform := kept_by_uniform(trace)) is None:
        raise InvalidInput("no share of the best reward can be kept: it is not above 0")
    private: dict[str, dict[Budget, Any]] = {}
    unprotected = {}
    for label, record in trace.header["policies"].items():
        held = Policy.from_dict(record).privacy
        if isinstance(held, NonPrivate):
            unprotected[label] = trace.reward_kept(label)
        else:
            budgets = private.setdefault(without_budget(label, held), {})
            if held in budgets:
                raise InvalidInput(f"two policies are called {label!r} but for their budget, {held}")
            budgets[held] = trace.reward_kept(label)
    final, optimum = trace.header["rounds"], trace.optimum()
    limits = {
        Policy.from_dict(trace.header["policies"][label]).privacy: float(1.0 - one.at(final) / optimum)
        for label, one in trace.limits.items()
    }
    return Kept(private, unprotected, uniform, limits)


def without_budget(label: str, held: Budget) -> str:
    """A label such as "lazy-ucb, 1-DP" without its end."""
    return label.removesuffix(f", {held}")


def kept_by_uniform(trace: "Trace") -> float | None:
    """The share that random actions keep; None where the best reward is not above 0."""
    world = Environment.from_dict(trace.header["environment"])
    lost, optimum = world.uniform_total(trace.header["rounds"]), trace.optimum()
    return float(1.0 - lost / optimum) if optimum > 0.0 else None
