"""All replays that a policy is put through: no leak may hide where one of them does not look.

A replay of short streams of extreme people at one budget would pass a policy that leaks late, or about
rewards in between, or at small budgets, or in many dimensions, or whose short batches (`short_form`) are
those of another recipe, or that knows an audit when it sees one. So streams are long as well, people
drawn at random, budgets others, dimensions more; and what was recorded must be what is executed.
"""

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from dpbandits.audit.recording import RecordingNoise, Steer
from dpbandits.audit.replay import replay
from dpbandits.audit.watching import ReadRounds, serve
from dpbandits.engine import Streams, state_bytes
from dpbandits.engine.streams import learner_seed
from dpbandits.errors import DPBanditsError
from dpbandits.policies import Learner, LocalPolicy, Person, Policy, Server, TrustedPolicy
from dpbandits.policies.kernel.shared.local_kernel import LocalKernelPolicy
from dpbandits.policies.policy import NoiseKind
from dpbandits.policies.testing import PolicyTesting, rehearse, short_form
from dpbandits.privacy.budgets import ApproxDP, Budget, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpbandits.problems import Arms, Problem

# How much longer a long stream is, and what other budgets are tried, as parts of the one asked for.
_LONGER, _MOST_LONGER, _FACTORS = 20, 16, (0.003, 0.03, 0.4, 3.0, 30.0)


class Check(NamedTuple):
    """One of them, and what it found."""

    title: str
    passed: bool
    said: str


class Control(NamedTuple):
    """A policy that is wrong on purpose, and what caught it."""

    name: str
    wrong: str
    caught: bool
    by: str


def controls(problem: Problem) -> Iterator[Callable[[], Control]]:
    """Those for a kind of problem, to be run one by one; evasive ones by the check that finds them."""
    from dpbandits.audit.broken import broken_policies
    from dpbandits.audit.broken_evasive import EVASIVE

    rounds = problem.testing.replay_rounds
    for broken in broken_policies(GaussianDP(1.0)):
        if isinstance(problem, broken.problem_kind):

            def replayed(one: Policy = broken) -> Control:
                found = replay(one, problem.testing.example(rounds), rounds=rounds)
                said = found.failure or f"cost {found.cost:.4g} of {found.limit:.4g}"
                return _control(one, not found.private, said)

            yield replayed
    for kind in EVASIVE:
        evasive = kind(privacy=GaussianDP(1.0))
        if isinstance(problem, kind.problem_kind):

            def searched(one: Any = evasive) -> Control:
                check = dict(battery(one))[one.found_by]()
                return _control(one, not check.passed, one.found_by)

            yield searched


def _control(policy: Policy, caught: bool, by: str) -> Control:
    return Control(type(policy).__name__, (type(policy).__doc__ or "").split("\n")[0], caught, by)


def battery(policy: Policy, rounds: int | None = None) -> Iterator[tuple[str, Callable[[], Check]]]:
    """The checks of a policy, each with its title, to be made one by one; short streams of `rounds`."""
    kind = policy.problem_kind
    short = rounds or kind.testing.replay_rounds
    long, half = _LONGER * kind.testing.replay_rounds, short // 2
    flight: dict[str, Any] = {"in_flight": 7}

    def quick(title: str, one: Policy, problem: Problem, length: int = short, **options: Any) -> Any:
        def run() -> Check:
            found = replay(one, problem, rounds=length, thorough=False, **options)
            return Check(title, found.private, found.measured)

        return title, run

    small, example = short_form(policy), kind.testing.example(short)
    yield "short batches are an option of the same policy", lambda: _same_recipe(policy, small)
    title = "what is recorded is what is executed"
    yield title, partial(_executed_as_recorded, small, example, short, title)
    title = "extreme people, short batches, every position"
    yield title, partial(_every_position, title, small, example, short)
    yield quick("people inside the range", small, example, inside=True)
    yield quick("two people at once", small, example, together=2)
    yield quick(
        "thirty rounds in flight", small, kind.testing.example(short + 30), short + 30, in_flight=30
    )
    yield quick("rounds closed by a clock", small, example, patience=3.0, **flight)
    if not type(policy).abstract:  # those are in no table, so that none can be loaded
        yield quick("saved and loaded half way, in flight", small, example, reload=half, **flight)
    yield quick("with all that may be read of it", small, example, machine=ReadRounds, **flight)
    with contextlib.suppress(DPBanditsError):  # not every policy is for people who return
        returning = replace(example, rounds_per_person=2)
        small.guarantee(returning)
        yield quick("two rounds of each person", small, returning)
    past = kind.testing.past(example, kind.testing.extreme_people(example)[:1])
    with contextlib.suppress(DPBanditsError):  # nor may every one start from a log
        rehearse(small, example, seed=0, history=past)
        yield quick("started from an earlier log", small, example, history=half)
        if past.action is not None:
            yield quick("an earlier log of one action", small, example, history=half, one_action=True)
        with contextlib.suppress(DPBanditsError):
            returning = replace(example, rounds_per_person=2)
            small.guarantee(returning)
            yield quick("an earlier log, two rounds of each person", small, returning, history=half)
    with contextlib.suppress(DPBanditsError):  # nor from public rows
        rehearse(small, example, seed=0, public_history=past)
        rows = {"history": half, "public_history": 5}
        yield quick("started from public rows and an earlier log", small, example, **rows)
    if not policy.refuses_exact_noise(example):
        yield quick("exact noise on a grid", small, example, exact=True)
    for factor in _FACTORS:
        with contextlib.suppress(DPBanditsError):  # not every policy takes every budget
            other = replace(small, privacy=_scaled(policy.privacy, factor))
            other.guarantee(example)
            yield quick(f"at {other.privacy}", other, example)
    if kind is Arms:
        yield quick("40 arms", small, kind.testing.example(short, size=40))
    for called, other in kind.testing.others(short).items():
        if _is_for(small, other):
            yield from _checks_of_case(called, small, other, short, quick)
    wide = kind.testing.example(short, size=12)
    size = kind.testing.size_in_words(wide)
    yield quick(size, small, wide)
    yield quick(f"{size}, people inside the range", small, wide, inside=True)
    yield "as configured", partial(_as_configured, policy, long)


def _is_for(policy: Policy, problem: Problem) -> bool:
    """Whether a policy promises anything there; not all are for every case of a kind of problem."""
    try:
        policy.guarantee(problem)
    except DPBanditsError:
        return False
    return True


def _checks_of_case(
    called: str, policy: Policy, problem: Problem, rounds: int, quick: Callable[..., Any]
) -> Iterator[tuple[str, Callable[[], Check]]]:
    """The checks that matter most, on another case of a kind of problem."""
    half, past = rounds // 2, problem.testing.past(problem, problem.testing.extreme_people(problem)[:1])
    title = f"{called}, every position"
    # To the first person all arms are alike, and later ones are in fewer nodes of a tree.
    yield title, partial(_every_position, title, policy, problem, rounds, floor=0.75)
    title = f"{called}, what is recorded is what is executed"
    yield title, partial(_executed_as_recorded, policy, problem, rounds, title)
    yield quick(f"{called}, people inside the range", policy, problem, inside=True)
    if not type(policy).abstract:
        yield quick(f"{called}, saved and loaded half way", policy, problem, reload=half, in_flight=7)
    with contextlib.suppress(DPBanditsError):
        returning = replace(problem, rounds_per_person=2)
        policy.guarantee(returning)
        yield quick(f"{called}, two rounds of each person", policy, returning)
    with contextlib.suppress(DPBanditsError):
        rehearse(policy, problem, seed=0, history=past)
        yield quick(f"{called}, started from an earlier log", policy, problem, history=half)
    if not policy.refuses_exact_noise(problem):
        yield quick(f"{called}, exact noise on a grid", policy, problem, exact=True)


def _every_position(
    title: str, policy: Policy, problem: Problem, rounds: int, *, floor: float = 0.9
) -> Check:
    """Private, and near the limit somewhere: otherwise nothing was tested."""
    found = replay(policy, problem, rounds=rounds, thorough=rounds <= 100, floor=floor)
    return Check(title, found.passed, found.measured if found.passed else str(found))


def _as_configured(policy: Policy, rounds: int) -> Check:
    """Over so many rounds, or more until something is released: otherwise nothing would be tested."""
    testing = policy.problem_kind.testing
    if (first := _first_release(policy, rounds)) is None:
        said = f"nothing is released in {_MOST_LONGER * rounds:,} rounds, so that nothing can be tested"
        return Check("as configured", False, said)
    rounds = max(rounds, first + first // 4)
    found = replay(policy, testing.example(rounds), rounds=rounds, thorough=False)
    cost = found.cost > 0.0 or not found.private
    said = found.measured if cost else f"{found.measured}, so that nothing was tested"
    return Check(f"as configured, {rounds:,} rounds", found.private and cost, said)


def _first_release(policy: Policy, rounds: int) -> int | None:
    """After how many rounds something was spent, as the learner says; `rounds` if it cannot say.

    Nor if it says nothing of all the rounds that the guarantee covers: the replay will tell.
    """
    problem = policy.problem_kind.testing.example(rounds)
    learner = rehearse(policy, problem, seed=0)
    if isinstance(policy, LocalPolicy) or (
        learner.released() is None and not policy.says_what_is_spent()
    ):
        return rounds
    person = policy.problem_kind.testing.extreme_people(problem)[0]  # one at a time, all alike
    covered = policy.guarantee(problem).horizon
    for played in range(_MOST_LONGER * rounds if covered is None else covered):
        if learner.spent is not None:
            return played
        serve(learner, person)
    return None if covered is None else rounds


def _same_recipe(policy: Policy, small: Policy) -> Check:
    """Short batches are an option of the same class, at the same budget."""
    same = type(small) is type(policy) and small.privacy == policy.privacy
    said = (
        "same class, same budget"
        if same
        else f"{small!r} is not {type(policy).__name__} at {policy.privacy}"
    )
    return Check("short batches are an option of the same policy", same, said)


def _scaled(budget: Budget, factor: float) -> Budget:
    match budget:
        case PureDP(epsilon=size):
            return PureDP(size * factor)
        case GaussianDP(mu=size):
            return GaussianDP(size * factor)
        case ZeroConcentratedDP(rho=size):
            return ZeroConcentratedDP(size * factor)
        case ApproxDP(epsilon=size, delta=delta):
            return ApproxDP(size * factor, delta)
        case RenyiDP(order=order):
            return RenyiDP(order, budget.size * factor)
    return budget


def _executed_as_recorded(policy: Policy, problem: Problem, rounds: int, title: str) -> Check:
    """A learner with a real generator, plain and compiled, is bit for bit what the audit records.

    And what users start is what is rehearsed. A policy that tells them apart, or whose compiled verbs
    are others, is found out here.
    """
    seed = np.random.SeedSequence(1)
    last = policy.guarantee(problem).horizon or rounds
    people = problem.testing.extreme_people(problem)
    order = np.random.default_rng(2).integers(len(people), size=last)
    if not starts_plainly(policy, problem):
        return Check(title, False, "what `start` gives is not what this package makes of the policy")
    kinds = [False] if policy.refuses_exact_noise(problem) else [False, True]
    for exact in kinds:
        # Exact noise as learners at work have it, from the operating system: a copy for each.
        streams = Streams.of(None if exact else seed)
        forms = ["plain", "recorded", *(["compiled"] if _compiles(policy, problem, people[0]) else [])]
        learners = {}
        for form in forms:
            one = rehearse(policy, problem, seed=seed, exact=exact, compiled=form == "compiled")
            one.use(copy.deepcopy(streams))
            learners[form] = one
        if isinstance(policy, TrustedPolicy):
            noise_kind: NoiseKind = "exact" if exact else "float"
            for form, given in (("started", 0), ("started without a seed", None)):
                learners[form] = policy.start(problem, seed=given, noise=noise_kind, compiled=False)
                learners[form].use(copy.deepcopy(streams))
        plain, recorded = learners["plain"], learners["recorded"]
        noise = RecordingNoise(recorded._streams.noise, Steer(), exact=exact)
        recorded.lend(recorded._rounds, noise, recorded._explore)
        for index in order:
            for learner in learners.values():
                serve(learner, people[index])
            states = {n: state_bytes(one._public, one._secret) for n, one in learners.items()}
            for which, state in states.items():
                if state != states["plain"]:
                    return Check(title, False, f"the {which} form differs in round {plain.rounds}")
    return Check(title, True, f"{', '.join(learners)}: alike for {last} rounds")


def starts_plainly(policy: Policy, problem: Problem) -> bool:
    """Whether users are given a learner, or a server and people, by this package's own methods.

    Another policy could give users one thing and the audit another. A server and a person must also
    begin in the state that the recipe gives; a learner is compared as it plays.
    """
    kind: Any = type(policy)
    if type(policy.testing).rehearse is not PolicyTesting.rehearse:
        return False
    if isinstance(policy, TrustedPolicy):
        return kind.start is TrustedPolicy.start and type(policy.start(problem)) is Learner
    if not isinstance(policy, LocalPolicy) or kind.person is not LocalPolicy.person:
        return False
    if kind.start not in (LocalPolicy.start, LocalKernelPolicy.start):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are few rounds here
        server = policy.start(problem, seed=0)
    person = policy.person(problem, server.broadcast(), seed=0)
    own = Server(policy, problem, Streams.of(learner_seed(0)))
    begun = state_bytes(own._public, own._secret)
    return (
        type(server) is Server
        and type(person) is Person
        and state_bytes(server._public, own._secret) == begun
        and state_bytes(person._public, own._secret) == begun
    )


def _compiles(policy: Policy, problem: Problem, person: Any) -> bool:
    """Whether it can run compiled at all: a policy in plain Python alone need not."""
    try:
        serve(rehearse(policy, problem, compiled=True, seed=0), person)
    except NumbaError:
        return False
    return True
