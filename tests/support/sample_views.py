"""Experiments of all sorts as the page shows them, made by real learners from seeds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dpbandits as dpb
from dpbandits.service.ledger import Signer, make_entry, opened_body, page_body, population_record
from dpbandits.service.views import View, history
from dpbandits.testing import example_environment

SIGNER = Signer(bytes(32))
START = 1_800_000_000
Entries = list[dict[str, Any]]
Sample = tuple[View, Entries]


class Written:
    """A ledger that grows."""

    def __init__(self, name: str) -> None:
        self.name, self.entries = name, list[dict[str, Any]]()

    def add(self, kind: str, body: dict[str, Any], at: int) -> None:
        previous = self.entries[-1]["hash"] if self.entries else ""
        place: dict[str, Any] = {"number": len(self.entries), "at": at, "previous": previous}
        self.entries.append(make_entry(SIGNER, experiment=self.name, kind=kind, body=body, **place))


def sample(
    name: str,
    policy: Any,
    problem: Any,
    *,
    labels: Sequence[str] = (),
    rounds: int = 2000,
    reward: Callable[[Any, np.random.Generator], Any],
    context: Callable[[np.random.Generator], Any] | None = None,
    state: str = "running",
    population: str | None = None,
    siblings: dict[str, Any] | None = None,
    retire: int | None = None,
    pages: int = 60,
) -> Sample:
    """An experiment after so many rounds, and its ledger."""
    chance = np.random.default_rng(1)
    learner = policy.start(problem, seed=1)
    central = learner.guarantee.trust == "central"
    shares = np.zeros(len(labels), np.int64)
    ledger = Written(name)
    body = opened_body(
        experiment=name,
        policy=policy,
        problem=problem,
        labels=labels,
        in_flight=10_000,
        patience=600.0,
        noise="float" if policy.refuses_exact_noise(problem) else "exact",
        key=SIGNER.public_key,
        population=population,
        budgets=siblings,
    )
    ledger.add("opened", body, START)
    for number in range(1, rounds + 1):
        if retire is not None and number == rounds // 2:
            learner.retire(retire)
            ledger.add(
                "changed",
                {"act": "retire", "label": labels[retire], "decided": number},
                START + 60 * number,
            )
        action = learner.select() if context is None else learner.select(context(chance))
        learner.update(action, reward(action, chance))
        if central:
            shares[action] += 1
        if number % max(1, rounds // pages) == 0:
            told = page_body(
                decided=number,
                closed=number,
                epoch=1,
                generation=number,
                released=learner.released(),
                shares=shares.tolist() if central else None,
            )
            ledger.add("page", told, START + 60 * number)
    end = START + 60 * rounds
    if state == "stopped":
        ledger.add("stopped", {"decided": rounds, "closed": rounds}, end)
    if state == "abandoned":
        ledger.add("abandoned", {"reason": "the keyring was lost"}, end)
    budgets = {**(siblings or {}), name: learner.guarantee.budget}
    view = View(
        name=name,
        policy=policy.to_dict(),
        problem=problem.to_dict(),
        noise=body["noise"],
        labels=tuple(labels),
        guarantee=learner.guarantee,
        state=state,
        decided=rounds,
        closed=rounds,
        window=10_000,
        deadline=600.0,
        horizon=problem.horizon,
        generation=rounds,
        population=population,
        together="" if population is None else population_record(population, budgets)["sentence"],
        retired=() if retire is None else (labels[retire],),
        released=learner.released(),
        as_of=end,
        shares=tuple(shares.tolist()) if central else None,
        history=history(ledger.entries),
        ledger_head=ledger.entries[-1]["hash"],
        ledger_entries=len(ledger.entries),
    )
    return view, ledger.entries


def _paying(*means: float) -> Callable[[Any, np.random.Generator], float]:
    return lambda action, chance: float(chance.random() < means[action])


def arms() -> Sample:
    """Many rounds, a population, and a retired arm."""
    problem = dpb.Arms(5, horizon=20_000)
    policy = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))
    return sample(
        "checkout-button",
        policy,
        problem,
        labels=["Buy now", "Add to basket", "Order", "Continue to payment", "Get it"],
        rounds=6000,
        reward=_paying(0.3, 0.35, 0.25, 0.5, 0.45),
        population="shoppers",
        siblings={"headline": dpb.PureDP(0.5)},
        retire=4,
    )


def hostile() -> Sample:
    """Labels and names that try to break out, and long ones."""
    labels = [
        "<b>bold</b><script>alert(1)</script>",
        "x" * 200,
        '"><img src=x onerror=alert(1)>',
        "שלום \u202e right to left",
    ]
    return sample(
        "a-very-long-name-of-an-experiment.that-goes-on-and-on-to-64-letters",
        dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)),
        dpb.Arms(4, horizon=2000),
        labels=labels,
        reward=_paying(0.2, 0.4, 0.6, 0.8),
        rounds=2000,
        population="<i>people</i>",
    )


def matroid() -> Sample:
    """A decision is a set."""
    return sample(
        "front-page",
        dpb.FocusedMatroidUCB(privacy=dpb.GaussianDP(1.0)),
        dpb.problems.MatroidBases(dpb.problems.UniformMatroid(6, 3)),
        labels=["Politics", "Sport", "Weather", "Culture", "Science", "Local"],
        reward=lambda action, chance: (
            chance.random(len(action)) < 0.2 + 0.1 * np.asarray(action)
        ).astype(float),
        rounds=3000,
    )


def joint() -> Sample:
    """Everybody brings her own actions: parameters are released, shares are not."""
    truth = np.array([0.6, -0.3, 0.1, 0.5])

    def context(chance: np.random.Generator) -> Any:
        rows = chance.normal(size=(5, 4))
        context.last = rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[attr-defined]
        return context.last  # type: ignore[attr-defined]

    return sample(
        "recommended-films",
        dpb.RandomizedLinUCB(privacy=dpb.ApproxDP(1.0, 1e-6)),
        dpb.LinearContexts(4),
        context=context,
        reward=lambda action, chance: float(context.last[action] @ truth),  # type: ignore[attr-defined]
        rounds=3000,
    )


def silent(rounds: int = 3000) -> Sample:
    """Nothing is released but decisions; stopped."""
    return sample(
        "greeting",
        dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)),
        dpb.Arms(3, horizon=5000),
        labels=["Hello", "Good day", "Hi"],
        reward=_paying(0.3, 0.5, 0.4),
        rounds=rounds,
        state="stopped",
    )


def many() -> Sample:
    """Thirty arms."""
    return sample(
        "thirty-banners",
        dpb.LazyThompson(privacy=dpb.PureDP(1.0)),
        dpb.Arms(30, horizon=100_000),
        labels=[f"Banner {number:02}" for number in range(1, 31)],
        reward=_paying(*np.linspace(0.1, 0.6, 30)),
        rounds=6000,
    )


def bare() -> Sample:
    """No guarantee, and abandoned."""
    return sample(
        "without-privacy",
        dpb.arms.UCB1(),
        dpb.Arms(2),
        labels=["a", "b"],
        reward=_paying(0.4, 0.6),
        rounds=500,
        state="abandoned",
    )


def fresh() -> Sample:
    """Before its first decision."""
    return sample(
        "not-begun",
        dpb.NoiseAwareIMED(privacy=dpb.PureDP(0.5)),
        dpb.Arms(2, rounds_per_person=3),
        labels=["on", "off"],
        reward=_paying(0.4, 0.6),
        rounds=0,
    )


def pairs() -> Sample:
    """What is learned of pairs of a context and an action."""
    return sample(
        "offers-by-place",
        dpb.kernels.Capri(privacy=dpb.GaussianDP(1.0)),
        example_environment(dpb.problems.KernelContexts).problem(600),
        context=lambda chance: int(chance.integers(2)),
        reward=lambda action, chance: 0.5 - 0.4 * action + 0.1 * chance.random(),
        rounds=600,
        pages=20,
    )


def actions() -> Sample:
    """Public actions with features."""
    return sample(
        "layouts",
        dpb.linear.BatchedLinUCB(privacy=dpb.GaussianDP(1.0)),
        dpb.LinearActions([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]),
        labels=["first row", "second row", "third row"],
        reward=lambda action, chance: (0.3, 0.9, 0.5)[action] * chance.random(),
        rounds=1500,
        pages=20,
    )


ALL: tuple[Callable[[], Sample], ...] = (
    arms,
    hostile,
    matroid,
    joint,
    silent,
    many,
    bare,
    fresh,
    pairs,
    actions,
)
