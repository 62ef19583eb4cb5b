"""The promises every policy makes, each a check that raises `ConformanceError` when it is broken.

All but one are exact. `check_beats_uniform` is statistical: a policy that is no better than uniform
play passes it with probability below 10⁻⁶ (one-sided normal test on independent runs).
"""

import copy
import dataclasses
import inspect
import json
import math
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.audit import replay, report_cost
from dpbandits.audit.watching import ReadRounds
from dpbandits.engine import arguments, bare, has_pauses, knows_ahead, leaves, steps_of
from dpbandits.engine import state_bytes as bytes_of
from dpbandits.engine.streams import Streams, run_seed
from dpbandits.errors import (
    BudgetNotAccepted,
    ConformanceError,
    DPBanditsError,
    HorizonReached,
    InvalidInput,
    RoundError,
    SaveFileError,
)
from dpbandits.policies import Learner, LocalPolicy, Policy, load
from dpbandits.policies.testing import rehearse, short_form
from dpbandits.privacy.budgets import Budget, GaussianDP, NonPrivate, PureDP
from dpbandits.privacy.calibration import limit_of
from dpbandits.problems import Problem
from dpbandits.recipes import Recipe
from dpbandits.simulation import simulate
from dpbandits.testing.driving import (
    alike,
    drive,
    drive_apart,
    simulated_totals,
    state_bytes,
    state_size,
)
from dpbandits.testing.examples import _BUDGETS, example_environment
from dpbandits.worlds import Environment

ROUNDS = 600
_Z_ONE_IN_A_MILLION = 4.753


def require(condition: bool, policy: Policy, promise: str) -> None:
    """Say which policy broke which promise."""
    if not condition:
        raise ConformanceError(f"{type(policy).__name__} with {policy.privacy}: {promise}")


def refuses(error: type[DPBanditsError], action: Callable[[], object]) -> str | None:
    """The sentence with which an action was refused, or None if it was not."""
    try:
        action()
    except error as refusal:
        return str(refusal)
    return None


def check_policy(policy: Policy, environment: Environment | None = None) -> None:
    """Run every check on a policy; silent if all hold; otherwise the error lists all that fail."""
    world = environment or example_environment(policy.problem_kind)
    run_checks(CHECKS, policy, world)


def run_checks(checks: Iterable[Callable[..., None]], *subject: object) -> None:
    """Run them all, and list all that fail."""
    told = [said for check in checks if (said := refuses(ConformanceError, partial(check, *subject)))]
    if told:
        raise ConformanceError("\n".join(told))


def is_frozen(recipe: Recipe) -> bool:
    """Whether its fields cannot be set."""
    try:
        setattr(recipe, dataclasses.fields(recipe)[0].name, None)
    except dataclasses.FrozenInstanceError:
        return True
    return False


def declared_range(problem: Problem) -> tuple[float, float]:
    """The least and the largest reward of a problem."""
    ends = problem.testing.extreme_people(problem)[:2]
    low, high = sorted(float(np.max(bare(reward))) for _, reward in ends)
    return low, high


def check_recipe(policy: Policy, world: Environment) -> None:
    """Frozen, hashable, the same after a round trip through JSON, documented."""
    require(is_frozen(policy), policy, "a recipe must be frozen")
    require(Recipe.from_json(policy.to_json()) == policy, policy, "JSON must give the recipe back")
    require(isinstance(hash(policy), int), policy, "a recipe must be hashable")
    text = inspect.getdoc(type(policy)) or ""
    for part in ("**Definition.**", "**Guarantee.**", "**Regret.**"):
        require(part in text, policy, f"the docstring needs a part {part}")


def check_budgets(policy: Policy, world: Environment) -> None:
    """Kinds of budget it does not accept are refused, and the sentence names what is."""
    for budget in _BUDGETS:
        if not isinstance(budget, policy.accepts):
            said = refuses(BudgetNotAccepted, partial(type(policy), privacy=budget))
            require(said is not None, policy, f"{budget!r} must be refused")
            named = all(kind.__name__ in (said or "") for kind in policy.accepts)
            require(named, policy, "the refusal must name what is accepted")


def check_three_ways(policy: Policy, world: Environment) -> None:
    """Plain Python, compiled verb by verb, and the simulation loop agree to the last bit."""
    for one in {policy, short_form(policy)}:
        _agree_three_ways(one, world)


def _agree_three_ways(policy: Policy, world: Environment) -> None:
    problem, seed = world.problem(ROUNDS), run_seed(3, 0)
    plain = drive(rehearse(policy, problem, seed=seed), world, seed, ROUNDS)
    again = drive(rehearse(policy, problem, seed=seed), world, seed, ROUNDS)
    compiled = drive(rehearse(policy, problem, seed=seed, compiled=True), world, seed, ROUNDS)
    require(plain.actions == again.actions, policy, "the same streams must give the same decisions")
    require(plain == compiled, policy, "plain and compiled runs must agree to the last bit")
    for chunk in (1, 7, ROUNDS):
        totals = simulated_totals(policy, world, seed, ROUNDS, chunk)
        require(totals == plain.totals, policy, f"the simulation (chunk {chunk}) must agree bitwise")


def check_in_flight(policy: Policy, world: Environment) -> None:
    """With several rounds open, the three ways agree too, and the order of arrival changes nothing."""
    problem, seed = world.problem(ROUNDS), run_seed(9, 0)
    for one, places in ((policy, 50), (short_form(policy), 7)):
        learner = rehearse(one, problem, seed=seed, in_flight=places)
        plain = drive(learner, world, seed, ROUNDS)
        for arrivals in map(np.random.default_rng, range(2)):
            learner = rehearse(one, problem, seed=seed, in_flight=places)
            other = drive(learner, world, seed, ROUNDS, arrivals=arrivals)
            require(other == plain, policy, f"the order of arrival ({places} open) must change nothing")
        learner = rehearse(one, problem, seed=seed, in_flight=places, compiled=True)
        compiled = drive(learner, world, seed, ROUNDS)
        require(plain == compiled, policy, f"plain and compiled runs ({places} open) must agree")
        for chunk in (13, ROUNDS):
            totals = simulated_totals(one, world, seed, ROUNDS, chunk, places)
            require(totals == plain.totals, policy, f"the simulation ({places} open) must agree bitwise")


def check_leaps(policy: Policy, world: Environment) -> None:
    """A state that says how long it will play an arm does so, and may learn of those rounds at once."""
    problem = world.problem(ROUNDS)
    for one in {policy, short_form(policy)}:
        public, secret = one.begin(problem)
        if knows_ahead(type(public)) and not has_pauses(public):
            _knows_ahead(one, public, secret, world)


def _knows_ahead(policy: Policy, public: Any, secret: Any, world: Environment) -> None:
    """One round at a time; after each a copy learns of all since the last choice."""
    (noise, explore, chance), state = Streams.of(run_seed(10, 0)), world.world()
    steps, certain, taken, total, last, copied = steps_of(public), 0, 0, 0.0, -1, (public, secret)
    for _ in range(ROUNDS):
        context = state.offer(chance)
        before = bytes_of(public, secret), noise.bit_generator.state
        action = steps.decide(public, secret, context, noise, explore)
        if certain == 0:
            taken, total, last, copied = 0, 0.0, action, copy.deepcopy((public, secret))
        else:
            same = before == (bytes_of(public, secret), noise.bit_generator.state)
            require(same and action == last, policy, "what it says of rounds ahead must come true")
        certain = max(certain, public.rounds_ahead(action))
        require(certain > 0, policy, "the round that was decided is one of those ahead")
        reward = float(chance.random() < 0.5)
        public.observe(secret, context, action, reward)
        certain, taken, total = certain - 1, taken + 1, total + reward
        many = copy.deepcopy(copied)
        many[0].observe_many(many[1], action, taken, total)
        alike = bytes_of(*many) == bytes_of(public, secret)
        require(alike, policy, "rounds learned of at once must leave the state of one by one")


def check_rounds(policy: Policy, world: Environment) -> None:
    """A round is opened once, answered once, for its own action; errors change nothing."""
    learner = rehearse(policy, world.problem(ROUNDS), seed=1)
    offered = _offers(world)
    require(refuses(RoundError, learner.skip) is not None, policy, "skip before select is refused")
    early = refuses(RoundError, lambda: learner.update(0, 1.0))
    require(early is not None, policy, "update before select is refused")
    action = learner.select(*offered)
    before = state_bytes(learner)
    other = np.asarray(action) + 1
    for wrong, error, said in (
        (lambda: learner.update(other, 1.0), RoundError, "another action"),
        (lambda: learner.update(action, math.nan), InvalidInput, "NaN"),
        (lambda: learner.update(action, "a"), InvalidInput, "not a number"),
        (lambda: learner.select(*offered), RoundError, "a second select"),
    ):
        require(refuses(error, wrong) is not None, policy, f"{said} is refused")
    require(state_bytes(learner) == before, policy, "a refused call must change nothing")
    learner.update(action, alike(1.0, action))
    twice = refuses(RoundError, lambda: learner.update(action, 1.0))
    require(twice is not None, policy, "a second update is refused")
    learner.select(*offered)
    learner.skip()
    require(learner.rounds == 2, policy, "a skipped round counts")


def check_rewards(policy: Policy, world: Environment) -> None:
    """Rewards beyond the declared range act like the end of the range."""
    problem, offered = world.problem(200), _offers(world)
    inside, beyond = (rehearse(policy, problem, seed=2) for _ in range(2))
    low, high = declared_range(problem)
    for index in range(200):
        end, outwards = (low, -1e9) if index % 3 == 0 else (high, 1e9)
        for learner, reward in ((inside, end), (beyond, end + outwards)):
            action = learner.select(*offered)
            learner.update(action, alike(reward, action))
    require(state_bytes(inside) == state_bytes(beyond), policy, "rewards must be clipped as declared")


def check_noise_off(policy: Policy, world: Environment) -> None:
    """A budget of 10¹² (of the first kind accepted), no budget, and the declared twin decide alike."""
    if not isinstance(policy.privacy, NonPrivate) or policy.takes_no_budget():
        return
    seed, problem = run_seed(4, 0), world.problem(ROUNDS)

    def actions(other: Policy) -> list[Any]:
        return drive(rehearse(other, problem, seed=seed), world, seed, ROUNDS).actions

    open_actions = actions(policy)
    # Schedules may depend on the kind of budget; without one, they are those of the first accepted.
    if policy.accepts[0] in (GaussianDP, PureDP):
        huge: Budget = policy.accepts[0](1e12)
        same = actions(dataclasses.replace(policy, privacy=huge)) == open_actions
        require(same, policy, f"{huge!r} and NonPrivate() must decide alike")
    if (twin := policy.twin()) is not None:
        require(actions(twin) == open_actions, policy, "the twin must decide like NonPrivate()")


def check_horizon(policy: Policy, world: Environment) -> None:
    """The horizon is asked for where it is needed, kept where it is stated, ignored otherwise."""
    private = not isinstance(policy.privacy, NonPrivate)
    if policy.needs_horizon and private:
        said = refuses(InvalidInput, lambda: rehearse(policy, world.problem(None)))
        require(said is not None and "horizon" in said, policy, "a missing horizon is asked for")
    else:
        seed = run_seed(5, 0)
        runs = [
            drive(rehearse(policy, world.problem(horizon), seed=seed), world, seed, 100).actions
            for horizon in (100, 5000, None)
        ]
        require(runs[0] == runs[1] == runs[2], policy, "the horizon must not change decisions")
    learner = rehearse(policy, world.problem(40), seed=1)
    if learner.guarantee.is_private and learner.guarantee.horizon is not None:
        for _ in range(40):
            learner.decide(*_offers(world))
        before = state_bytes(learner)
        beyond = refuses(HorizonReached, lambda: learner.decide(*_offers(world)))
        require(beyond is not None, policy, "no decision past the horizon")
        require(state_bytes(learner) == before, policy, "a refused decision must change nothing")


def check_save(policy: Policy, world: Environment) -> None:
    """A save continues to the same trajectory, once, and is the owner's only; rounds in flight too."""
    for places in (1, 9):
        _continues(policy, world, places)


def _continues(policy: Policy, world: Environment, places: int) -> None:
    problem, seed = world.problem(ROUNDS), run_seed(6, 0)
    whole = rehearse(policy, problem, seed=seed, in_flight=places)
    drive(whole, world, seed, ROUNDS)
    learner = rehearse(policy, problem, seed=seed, in_flight=places)
    chance, state = Streams.of(seed).chance, world.world()
    drive(learner, world, chance, ROUNDS // 2, state)
    with tempfile.TemporaryDirectory() as folder:
        path = learner.save(Path(folder) / "learner.dpb")
        require(
            path.stat().st_mode & 0o777 == 0o600,
            policy,
            "a save file is readable by its owner only",
        )
        copy = load(path)
        drive(copy, world, chance, ROUNDS - ROUNDS // 2, state)
        require(state_bytes(copy) == state_bytes(whole), policy, "a save must continue the trajectory")
        require(copy.rounds == whole.rounds, policy, "a save must remember the rounds")
        require(refuses(SaveFileError, lambda: load(path)) is not None, policy, "a save continues once")


def check_memory(policy: Policy, world: Environment) -> None:
    """The state does not grow with the number of rounds."""
    learner = rehearse(policy, world.problem(ROUNDS), seed=1)
    before = state_size(learner)
    drive(learner, world, run_seed(1, 0), ROUNDS)
    require(state_size(learner) <= before, policy, "memory must not grow with the rounds")


def check_released(policy: Policy, world: Environment) -> None:
    """What may be read is made of public values alone, and equal on neighbouring streams."""
    small, seed = short_form(policy), run_seed(10, 0)
    learner = rehearse(small, world.problem(ROUNDS), seed=seed)
    if learner.released() is None:
        return
    drive(learner, world, seed, ROUNDS)
    before, told = state_bytes(learner), _record(learner)
    require(state_bytes(learner) == before, policy, "reading must change nothing")
    for _, value in leaves(learner._secret):
        if isinstance(value, np.ndarray):
            value[...] = 3
    require(_record(learner) == told, policy, "the record must not depend on the secret")
    rounds = world.problem(ROUNDS).testing.replay_rounds
    problem = _example(world, rounds)
    options: dict[str, Any] = {"in_flight": 7, "machine": ReadRounds}
    if small.guarantee(problem).is_private:
        found = replay(small, problem, rounds=rounds, thorough=False, **options)
        require(found.private, policy, f"with its record: {found}")


def _record(learner: Learner) -> str:
    record = learner.released()
    assert record is not None
    known, policy = np.isfinite(record.mean), learner.policy
    between = (record.low <= record.mean) & (record.mean <= record.high)
    require(bool((between | ~known).all()), policy, "a mean must lie within its interval")
    require(bool(known.any()), policy, f"something must be known after {ROUNDS} rounds")
    return f"{record}{json.dumps(record.to_dict(), allow_nan=False)}"


def check_beats_uniform(policy: Policy, world: Environment) -> None:
    """Better than uniform play at 10⁻⁶, or no different where the policy says so."""
    rounds, runs = 20_000, 10
    trace = simulate(policy, world, rounds, runs, seed=7, progress=False)
    final = trace.regret(policy.name())[:, -1]
    uniform = world.uniform_total(rounds)
    error = max(float(final.std(ddof=1)) / math.sqrt(runs), 1e-9 * uniform)
    gain = (uniform - float(final.mean())) / error
    if rounds < policy.plays_uniform_below(world.problem(rounds)):
        require(abs(gain) < _Z_ONE_IN_A_MILLION, policy, "declared uniform play must be uniform")
    else:
        shown = (
            f"mean regret {final.mean():.0f} ± {error:.0f} over {runs} runs, uniform play {uniform:.0f}"
        )
        need = f"needs {_Z_ONE_IN_A_MILLION} standard errors below"
        require(gain > _Z_ONE_IN_A_MILLION, policy, f"not shown to beat uniform play: {shown}, {need}")


def check_replay(policy: Policy, world: Environment) -> None:
    """The replay finds the guarantee kept, by a test that reaches it."""
    rounds = world.problem(ROUNDS).testing.replay_rounds
    problem = _example(world, rounds)
    if policy.guarantee(problem).is_private:
        found = replay(short_form(policy), problem, rounds=rounds)
        require(found.passed, policy, str(found))
        # And as it is, on a longer stream and a larger problem: private, if not at its worst there.
        long = replay(policy, _example(world, 6 * rounds, size=6), thorough=False)
        require(long.private, policy, str(long))
        # Past a horizon that was declared, where the guarantee is said not to end there; for people in
        # between the ends.
        declared = _example(world, rounds // 4)
        past = replay(short_form(policy), declared, rounds=rounds, thorough=False, inside=True)
        require(past.private, policy, str(past))


def check_replay_in_flight(policy: Policy, world: Environment) -> None:
    """The guarantee holds with several rounds open, by count and by a clock, and after save and load."""
    if not policy.guarantee(_example(world, 100)).is_private:
        return
    for places, patience in ((7, None), (50, None), (50, 4.0)):
        length = world.problem(ROUNDS).testing.replay_rounds + (places if patience is None else 10)
        problem = _example(world, length)
        options: dict[str, Any] = {"in_flight": places, "patience": patience}
        if places == 7:
            options["exact"] = not policy.refuses_exact_noise(problem)
            if not type(policy).abstract:
                options["reload"] = length // 2
        found = replay(short_form(policy), problem, rounds=length, thorough=False, **options)
        require(found.private, policy, f"{places} open, patience {patience}: {found}")


def check_history(policy: Policy, world: Environment) -> None:
    """Started from an earlier log the guarantee holds too; or a sentence refuses it."""
    testing, rows = world.problem(ROUNDS).testing, 9
    length = min(testing.replay_rounds, 24)
    problem, small = _example(world, length), short_form(policy)
    past = testing.past(problem, testing.extreme_people(problem)[:rows])
    if refuses(InvalidInput, lambda: rehearse(small, problem, seed=1, history=past)) is not None:
        return
    learner = rehearse(small, problem, seed=1, history=past)
    require(learner.rounds == learner.past.history == len(past), policy, "each row must be a round")
    if not small.guarantee(problem).is_private:
        return
    require("history" in str(learner.guarantee), policy, "the guarantee must name the history")
    options: dict[str, Any] = {"thorough": False, "in_flight": 3, "history": rows}
    found = replay(small, problem, rounds=length, **options)
    require(found.private, policy, f"started from a history: {found}")
    if refuses(InvalidInput, lambda: rehearse(small, problem, seed=1, public_history=past)) is not None:
        return
    found = replay(small, problem, rounds=length, public_history=5, **options)
    require(found.private, policy, f"started from a history and from public rows: {found}")


def check_local(policy: Policy, world: Environment) -> None:
    """Server and people apart decide like the rehearsal; no broadcast makes a message cost more."""
    if not isinstance(policy, LocalPolicy):
        return
    problem, seed = world.problem(ROUNDS), run_seed(8, 0)
    joined = drive(rehearse(policy, problem, seed=seed), world, seed, ROUNDS)
    apart = drive_apart(policy, world, seed, ROUNDS)
    require(apart == joined.actions, policy, "server and people apart must decide like the rehearsal")
    guarantee = policy.guarantee(problem)
    if guarantee.is_private:
        cost, limit = (
            report_cost(policy, _example(world, 48)),
            limit_of(guarantee.budget),
        )
        shown = f"a message costs {cost:.6g} of {limit:.6g} on some broadcast"
        require(cost <= limit * (1.0 + 1e-9), policy, shown)


def _example(world: Environment, horizon: int, *, size: int = 3) -> Problem:
    """A small problem of the case that the world is of."""
    problem = world.problem(ROUNDS)
    found: Problem = problem.testing.example_like(problem, horizon, size=size)
    return found


def _offers(world: Environment) -> tuple[Any, ...]:
    """One offer of the world, as arguments of `select`."""
    return arguments(world.world().offer(Streams.of(0).chance))


CHECKS: tuple[Callable[[Policy, Environment], None], ...] = (
    check_recipe,
    check_budgets,
    check_three_ways,
    check_in_flight,
    check_leaps,
    check_rounds,
    check_rewards,
    check_noise_off,
    check_horizon,
    check_save,
    check_memory,
    check_replay,
    check_replay_in_flight,
    check_history,
    check_local,
    check_released,
    check_beats_uniform,
)

__all__ = ["CHECKS", "Learner", "check_policy"]
