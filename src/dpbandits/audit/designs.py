"""Pairs of scripts that are easy to tell apart, for each kind of problem.

One person comes first and is replaced by her opposite; all others are alike. What the others pay decides
where the released sums lie against each other, so which choices depend on hers most: a few such levels
are tried. Scripts are short, and batches are (`short_form`); they run past a declared horizon where the
guarantee does.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpbandits.audit.scripts import Design
from dpbandits.policies import Policy
from dpbandits.policies.testing import short_form
from dpbandits.problems import Arms, KernelContexts, MatroidBases, Problem
from dpbandits.problems.linear import LinearProblem

_LEVELS = (0.0, 0.5, 1.0)
# Rounds declared and played: of short batches, and of those by default.
_SHORT, _LONG = ((6, 12), (15, 15)), ((40, 40),)


def designs_for(policy: Policy) -> Iterator[Design]:
    """Those to be tried, the shortest first."""
    kind = policy.problem_kind
    make: Any = _of_arms
    if issubclass(kind, MatroidBases):
        make = _of_items
    elif issubclass(kind, KernelContexts):
        make = _of_numbers
    elif issubclass(kind, LinearProblem):
        make = _of_features
    yield from make(policy)


def _sizes(
    policy: Policy, problem: Problem, short: Any, long: Any = ()
) -> Iterator[tuple[Policy, Any, int]]:
    """Recipes, problems and lengths of scripts; none runs past the end of its guarantee."""
    for recipe, lengths in ((short_form(policy), short), (policy, long)):
        for horizon, rounds in lengths:
            declared = replace(problem, horizon=horizon)
            last = recipe.guarantee(declared).horizon
            yield recipe, declared, rounds if last is None else min(rounds, last)


def _of_arms(policy: Policy) -> Iterator[Design]:
    """Two arms at two levels; she pays nothing, or 1, whatever she is given."""
    for recipe, problem, rounds in _sizes(policy, Arms(2), _SHORT, _LONG):
        for hers in _LEVELS:
            for rest in _LEVELS:
                rewards = np.empty((2, rounds, 2))
                rewards[..., 0], rewards[..., 1] = hers, rest
                rewards[0, 0], rewards[1, 0] = 0.0, 1.0
                name = f"{rounds} rounds, arms that pay {hers:g} and {rest:g}"
                yield Design(name, recipe, problem, rewards)


def _of_items(policy: Policy) -> Iterator[Design]:
    """All items at one level but the first, and opposite people for all items at once."""
    problem = policy.problem_kind.testing.example(None)
    for recipe, declared, rounds in _sizes(policy, problem, ((6, 9), (15, 15), (24, 24))):
        for level, first in ((0.5, 0.5), (0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0)):
            rewards = np.full((2, rounds, declared.items), level)
            rewards[..., 0] = first
            rewards[0, 0], rewards[1, 0] = 0.0, 1.0
            name = f"{rounds} rounds, items that pay {level:g}, the first {first:g}"
            yield Design(name, recipe, declared, rewards)


def _of_features(policy: Policy) -> Iterator[Design]:
    """A choice between opposite features in several directions, rewards for one or none."""
    problem: Any = policy.problem_kind.testing.example(None)
    (one,), high = problem.testing.extreme_people(problem)[0]
    (other,), low = problem.testing.extreme_people(problem)[1]
    for recipe, declared, rounds in _sizes(policy, problem, ((3, 6), (7, 9), (20, 22))):
        for level, turn in ((0.0, 1.0), (0.0, 2.4), (0.5, 1.0), (-0.5, 1.0)):
            rewards = np.full((2, rounds, 2), level * problem.max_reward)
            rewards[0, 0], rewards[1, 0] = high, low
            contexts = np.zeros((2, rounds, 2, problem.dimension))
            for t in range(1, rounds):
                angle = turn * t
                contexts[:, t, 0, :2] = problem.max_norm * np.array([math.cos(angle), math.sin(angle)])
                contexts[:, t, 1] = -contexts[:, t, 0]
            contexts[0, 0], contexts[1, 0] = one, other
            name = f"{rounds} rounds, directions {turn:g} apart, rewards {level:g}"
            yield Design(name, recipe, declared, rewards, contexts)


def _of_numbers(policy: Policy) -> Iterator[Design]:
    """She comes in the rarest context, or in the commonest like all others."""
    problem: Any = policy.problem_kind.testing.example(None)
    common = int(np.argmax(problem.context_weights()))
    (rare, high), (_, low) = problem.testing.extreme_people(problem)[:2]
    for recipe, declared, rounds in _sizes(policy, problem, ((9, 9),)):
        for hers in (rare, common):
            rewards = np.zeros((2, rounds, len(problem.actions)))
            rewards[0, 0], rewards[1, 0] = high, low
            contexts = np.full((2, rounds), common)
            contexts[:, 0] = hers
            name = f"{rounds} rounds without rewards, hers in context {hers}"
            yield Design(name, recipe, declared, rewards, contexts)
