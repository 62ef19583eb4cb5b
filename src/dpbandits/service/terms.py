"""What an experiment declares before its first decision. It never changes; another one may follow it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpbandits import checks, notation
from dpbandits.errors import DPBanditsError, InvalidInput, ServiceError
from dpbandits.features import CrossedFeatures
from dpbandits.policies import LocalPolicy, Policy
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems import Arms, KernelContexts, LinearActions, LinearContexts, MatroidBases, Problem
from dpbandits.recommend import recommend

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LABEL = 200  # characters
_MOST_PATIENCE = 10.0**8  # three years of seconds
FIELDS = (
    "name",
    "privacy",
    "actions",
    "policy",
    "problem",
    "trust",
    "in_flight",
    "patience",
    "rounds_per_person",
    "horizon",
    "population",
    "expected_people",
)


class InvalidTerms(InvalidInput):
    """A declaration that cannot be used; `field` is the part that is wrong, empty for all of it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, kw_only=True)
class Terms:
    """An experiment: its recipe, the labels of its actions, and how long its rounds stay open.

    >>> terms = Terms.read({"name": "headline", "privacy": "eps=1", "actions": ["calm", "loud"]})
    >>> terms.policy.name(), terms.label(1), terms.in_flight, terms.patience
    ('noise-aware-imed', 'loud', 10000, 600.0)
    """

    name: str
    policy: Policy
    problem: Problem
    labels: tuple[str, ...] = ()  # empty: actions are numbers
    in_flight: int = 10_000
    patience: float | None = 600.0
    population: str | None = None
    expected_people: int = 100_000
    declared: Mapping[str, Any]  # as it was written

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "Terms":
        """From what a file or a request says; anything unknown or unfit is refused by its field."""
        if not isinstance(record, Mapping):
            raise InvalidTerms("", "expected an experiment as a table of its terms")
        for field in record:
            if field not in FIELDS:
                known = ", ".join(FIELDS)
                raise InvalidTerms("", f"no term is called {field!r:.60}; known are {known}")
        for field in ("name", "privacy", "policy", "trust", "population"):
            if field in record and not isinstance(record[field], str):
                raise InvalidTerms(field, f"expected {field} to be a text")
        name = record.get("name", "")
        if not _NAME.fullmatch(name):
            raise InvalidTerms(
                "name",
                "an experiment is named by up to 64 small letters, digits, points and dashes, "
                f"got {checks.shown(name)}",
            )
        problem, labels = _problem(record)
        policy = _policy(record, problem)
        if "population" in record and not isinstance(policy, LocalPolicy):
            _refuse_unnamed_people(problem)
        return cls(
            name=name,
            policy=policy,
            problem=problem,
            labels=labels,
            population=_population(record.get("population")),
            declared=dict(record),
            **_timing(record),
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, for the database: the recipe as it was resolved, and as it was declared."""
        return {
            "name": self.name,
            "policy": self.policy.to_dict(),
            "problem": self.problem.to_dict(),
            "labels": list(self.labels),
            "in_flight": self.in_flight,
            "patience": self.patience,
            "population": self.population,
            "expected_people": self.expected_people,
            "declared": dict(self.declared),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Terms":
        """What `to_dict` gave."""
        return cls(
            **{
                **record,
                "policy": Policy.from_dict(record["policy"]),
                "problem": Problem.from_dict(record["problem"]),
                "labels": tuple(record["labels"]),
            }
        )

    def refuse_other_than(self, known: "Terms") -> None:
        """An experiment never changes: these must be the terms it was begun with."""
        if dict(self.declared) != dict(known.declared):
            raise ServiceError(
                f"{self.name} was begun with other terms, and an experiment never changes: give the new "
                "terms another name, or write the old ones"
            )

    @property
    def is_local(self) -> bool:
        """Whether people randomise their own answers, so that only messages come here."""
        return isinstance(self.policy, LocalPolicy)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, before any arm comes or goes."""
        return self.policy.guarantee(self.problem)

    @property
    def asks_who(self) -> bool:
        """Whether people are told apart."""
        return self.problem.rounds_per_person is not None and not self.is_local

    def is_on(self, population: str | None) -> bool:
        """Whether it is on these people; the successor of an experiment is on a population named so."""
        return population is not None and population in (self.population, self.name)

    @property
    def shows_actions(self) -> bool:
        """Whether how often each action was chosen is public: not where it may tell a context."""
        return self.guarantee.trust is Trust.CENTRAL and bool(self.labels or actions_of(self.problem))

    def label(self, action: int) -> str | int:
        """An action as the caller knows it."""
        return self.labels[action] if action < len(self.labels) else action


def actions_of(problem: Problem) -> int | None:
    """How many actions there are; None where everybody brings her own."""
    match problem:
        case Arms():
            return problem.arms
        case LinearActions():
            return len(problem.features)
        case LinearContexts(features=CrossedFeatures() as pairs):
            return len(pairs.actions)
        case LinearContexts():
            return problem.arms
        case KernelContexts():
            return len(problem.actions)
        case MatroidBases():
            return problem.items
    return None


def _problem(record: Mapping[str, Any]) -> tuple[Problem, tuple[str, ...]]:
    labels = _labels(record.get("actions"))
    given = record.get("problem", {"kind": "Arms"})
    if isinstance(given, str):
        given = {"kind": given}
    if not isinstance(given, Mapping):
        raise InvalidTerms(
            "problem", 'expected problem to be a table such as { kind = "Arms", arms = 3 }'
        )
    declared = dict(given)
    if declared.get("kind") == "Arms" and "arms" not in declared:
        if not labels:
            raise InvalidTerms("actions", 'expected actions, the labels of the arms: ["calm", "loud"]')
        declared["arms"] = len(labels)
    wrong = "problem"
    try:
        problem = Problem.from_dict(declared)
        for wrong in ("horizon", "rounds_per_person"):
            if wrong in record:
                problem = replace(problem, **{wrong: record[wrong]})
    except DPBanditsError as error:
        raise InvalidTerms(wrong, str(error)) from error
    except RecursionError:
        raise InvalidTerms("problem", "the problem is nested too deeply") from None
    actions = actions_of(problem)
    if labels and actions is None:
        raise InvalidTerms(
            "actions",
            "everybody brings her own actions here, so they are known by number: leave out labels",
        )
    if labels and len(labels) != actions:
        raise InvalidTerms(
            "actions", f"expected {actions} labels, one for each action, got {len(labels)}"
        )
    return problem, labels


def _labels(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise InvalidTerms("actions", 'expected actions to be a list of labels: ["calm", "loud"]')
    for label in given:
        check_label(label)
    if len(set(given)) < len(given):
        raise InvalidTerms("actions", "two actions have the same label")
    return tuple(given)


def check_label(label: Any) -> None:
    """Refuse what cannot be the name of an action."""
    if not (isinstance(label, str) and 0 < len(label) <= _LABEL and label.isprintable()):
        raise InvalidTerms("actions", f"a label is a printable text of 1 to {_LABEL} characters")


def _policy(record: Mapping[str, Any], problem: Problem) -> Policy:
    field = "privacy"
    try:
        wanted = record.get("privacy")
        budget = notation.default_budget(type(problem)) if wanted is None else notation.budget(wanted)
        field, trust = "trust", record.get("trust")
        if trust is not None:
            checks.one_of([one.value for one in Trust], trust=trust)
        field, text = "policy", record.get("policy", "recommend")
        if text != "recommend":
            policy = notation.policy(text, budget)
        else:
            policy = recommend(problem, budget, trust=trust).policy
        policy.check(problem)
        field = "trust"
        if trust is not None and policy.guarantee(problem).trust != trust:
            raise InvalidInput(f"{policy.name()} is not for {trust} trust on this problem")
    except DPBanditsError as error:
        raise InvalidTerms(field, str(error)) from error
    return policy


def _timing(record: Mapping[str, Any]) -> dict[str, Any]:
    """How many rounds may be open and for how long; how many people are expected."""
    found: dict[str, Any] = {}
    whole = {"in_flight": (2, checks.MOST_IN_FLIGHT), "expected_people": (1, 10**9)}
    for field, (least, limit) in whole.items():
        if field in record:
            try:
                checks.integer(least=least, limit=limit, **{field: record[field]})
            except InvalidInput as error:
                raise InvalidTerms(field, str(error)) from error
            found[field] = int(record[field])
    patience = record.get("patience", "default")
    if patience == "none":  # TOML has no null
        found["patience"] = None
    elif patience != "default":
        number = patience if isinstance(patience, int | float) and patience is not True else -1.0
        if not 0.0 < number <= _MOST_PATIENCE:
            raise InvalidTerms("patience", 'expected patience in seconds, above 0, or "none"')
        found["patience"] = float(number)
    return found


def _refuse_unnamed_people(problem: Problem) -> None:
    if problem.rounds_per_person is None:
        raise InvalidTerms(
            "population",
            "budgets of a population add up for each person, so people must be told apart: declare "
            "rounds_per_person too",
        )


def _population(name: str | None) -> str | None:
    if name is not None and not (0 < len(name) <= _LABEL and name.isprintable()):
        raise InvalidTerms("population", "expected population to be a printable name")
    return name
