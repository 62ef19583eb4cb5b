"""The promises every world makes, each a check that raises `ConformanceError` when it is broken.

All but three are exact. `check_pay` fails a world that keeps its promise with probability below 10⁻⁶: it
compares average rewards with the means that `settle` gives, for each action and for all together, by the
empirical Bernstein bound of Maurer & Pontil (2009), which holds for any rewards in the declared range.
So does `check_pay_many`, of means and variances of sums, and `check_uniform_regret`, as far as the
regret of 40 independent runs is normal.
"""

import inspect
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy  # whose parts, slow to import, are loaded at their first use
from numpy.typing import NDArray

from dpbandits.engine import arguments, bare, pays_many, state_bytes
from dpbandits.engine.streams import Streams, run_seed
from dpbandits.errors import ConformanceError, InvalidInput
from dpbandits.policies.testing import rehearse
from dpbandits.problems import Arms
from dpbandits.recipes import Recipe
from dpbandits.simulation import simulate
from dpbandits.testing.conformance import declared_range, is_frozen, run_checks
from dpbandits.testing.driving import drive, simulated_totals
from dpbandits.testing.examples import uniform_policy
from dpbandits.worlds import Environment

_FAILURE = 1e-6
_ROUNDING = 1e-9  # sums of means may be added up in another order
_ROUNDS, _PAYS = 200, 100  # decision sets that are looked at, and rewards drawn for each
_SUMS, _COUNTS = 2000, (1, 3, 1000)  # sums drawn at once, and of how many rewards
_UNIFORM_ROUNDS, _UNIFORM_RUNS = 1000, 40


def check_environment(environment: Environment) -> None:
    """Run every check on a world; silent if all hold, otherwise all that fail are listed."""
    run_checks(WORLD_CHECKS, environment)


def require(condition: bool, world: Environment, promise: str) -> None:
    """Say which world broke which promise."""
    if not condition:
        raise ConformanceError(f"{type(world).__name__}: {promise}")


class Paid(NamedTuple):
    """An action that was tried, with what it paid and how that was settled."""

    context: Any
    action: Any
    reward: NDArray[np.float64]
    best: float
    mean: float
    income: float

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for rewards of the same mean: context, where it is a number, and action."""
        context = self.context if isinstance(self.context, int) else None
        return context, *np.ravel(bare(self.action)).tolist()


def try_actions(world: Environment, rounds: int = _ROUNDS, pays: int = _PAYS) -> Iterator[Paid]:
    """Random actions, several in each of some rounds, in plain Python."""
    state, (_, explore, chance) = world.world(), Streams.of(run_seed(11, 0))
    problem = world.problem(rounds)
    public, _ = uniform_policy(problem).begin(problem)
    for _ in range(rounds):
        context = state.offer(chance)
        for _ in range(pays):
            action = public.select(context, explore)
            reward = state.pay(context, action, chance)
            yield Paid(context, action, np.array(bare(reward)), *state.settle(context, action, reward))


def check_world_recipe(world: Environment) -> None:
    """Frozen, hashable, the same after a round trip through JSON, documented."""
    require(is_frozen(world), world, "a recipe must be frozen")
    require(Recipe.from_json(world.to_json()) == world, world, "JSON must give the recipe back")
    require(isinstance(hash(world), int), world, "a recipe must be hashable")
    require(bool(inspect.getdoc(type(world))), world, "the class needs a docstring")


def check_problem(world: Environment) -> None:
    """The problem has the horizon asked for, is a recipe, and describes what is offered."""
    for rounds in (None, _ROUNDS):
        problem = world.problem(rounds)
        require(problem.horizon == rounds, world, f"problem({rounds}) must have this horizon")
        require(problem == world.problem(rounds), world, "a problem must be the same each time")
        back = Recipe.from_json(problem.to_json())
        require(back == problem, world, "JSON must give the problem back")
    state, chance = world.world(), Streams.of(run_seed(12, 0)).chance
    for _ in range(_ROUNDS):
        offered = state.offer(chance)
        try:
            taken = problem.context(*arguments(offered))
        except InvalidInput as error:
            raise ConformanceError(
                f"{type(world).__name__}: its problem refuses an offer: {error}"
            ) from None
        same = np.array_equal(bare(taken), bare(offered)) if offered is not None else taken is None
        require(same, world, "offers must be within what the problem declares")


def check_rewards(world: Environment) -> None:
    """Rewards are finite numbers within the range that the problem declares."""
    low, high = declared_range(world.problem(_ROUNDS))
    for paid in try_actions(world, pays=10):
        inside = bool(np.all((paid.reward >= low) & (paid.reward <= high)))  # NaN is not
        require(inside, world, f"rewards must be within [{low:g}, {high:g}], got {paid.reward}")


def check_settle(world: Environment) -> None:
    """No action is better than the best, some action is as good, and the income is what was paid.

    In hindsight that holds for sums over all rounds so far, after every round.
    """
    if world.in_hindsight():
        _check_hindsight(world)
        return
    least = math.inf
    for paid in try_actions(world, pays=10):
        least = min(least, paid.best - paid.mean)
        require(least >= -_ROUNDING, world, "the best mean must be at least that of every action")
        same = math.isclose(paid.income, float(paid.reward.sum()), abs_tol=_ROUNDING)
        require(same, world, "settle must give the reward back, or the sum of a set's rewards")
    require(least <= _ROUNDING, world, "the best mean must be that of some action")


def _check_hindsight(world: Environment) -> None:
    state, chance = world.world(), Streams.of(run_seed(11, 0)).chance
    problem = world.problem(_ROUNDS)
    if not isinstance(problem, Arms):
        raise ConformanceError(f"{type(world).__name__}: regret in hindsight is for Arms")
    worth, best_worth = np.zeros(problem.arms), 0.0
    for _ in range(_ROUNDS):
        context = state.offer(chance)
        paid = [state.pay(context, action, chance) for action in range(worth.size)]
        settled = [state.settle(context, action, reward) for action, reward in enumerate(paid)]
        worth += [mean for _, mean, _ in settled]
        best_worth += settled[0][0]
        same = all(best == settled[0][0] for best, _, _ in settled)
        require(same, world, "the best mean must be the same whatever was chosen")
        off = best_worth - worth.max()
        require(
            abs(off) <= _ROUNDING * _ROUNDS,
            world,
            "the best means must add up to the largest sum of the means of one action",
        )
        income = [income for _, _, income in settled]
        require(income == paid, world, "settle must give the reward back")


def check_pay(world: Environment) -> None:
    """Rewards have the means that `settle` gives, for each action and for all together."""
    low, high = declared_range(world.problem(_ROUNDS))
    surprises: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    width = 0.0  # of the interval around 0 in which a reward minus its mean lies
    for paid in try_actions(world):
        surprise = paid.income - paid.mean
        surprises[paid.key].append(surprise)
        surprises[()].append(surprise)
        width = 2.0 * paid.reward.size * (high - low)
    for key, found in surprises.items():
        error = math.inf if len(found) < 2 else _bernstein(found, width, len(surprises))
        off = math.fsum(found) / len(found)
        said = f"{_label(key)} paid {off:+.3g} against what settle says, and chance explains {error:.2g}"
        require(abs(off) <= error, world, said)


def check_pay_many(world: Environment) -> None:
    """Sums drawn at once are of rewards 0 and 1 with the mean that `settle` gives."""
    state, (_, _, chance), problem = world.world(), Streams.of(run_seed(12, 0)), world.problem(_ROUNDS)
    if not (pays_many(type(state)) and isinstance(problem, Arms)):
        return
    for action, count in itertools.product(range(problem.arms), _COUNTS):
        sums = [state.pay_many(action, count, chance) for _ in range(_SUMS)]
        whole = all(0 <= one <= count and one == int(one) for one in sums)
        require(whole, world, f"{count} rewards of 0 or 1 must add up to a whole number up to {count}")
        require(state.settle(None, action, sums[0])[2] == sums[0], world, "settle must give sums back")
        mean = state.settle(None, action, sums[0])[1]
        spread = mean * (1.0 - mean)
        surprises = [one / count - mean for one in sums]
        for found, width, what in (
            (surprises, 1.0, "mean"),
            ([count * one**2 - spread for one in surprises], count, "variance"),
        ):
            off, error = (
                math.fsum(found) / _SUMS,
                _bernstein(found, width, 2 * problem.arms * len(_COUNTS)),
            )
            said = f"the {what} of {count} rewards of action {action} is off by {off:+.3g}"
            require(abs(off) <= error, world, f"{said}, and chance explains {error:.2g}")


def _label(key: tuple[Any, ...]) -> str:
    if not key:
        return "all actions together"
    action = f"action {', '.join(map(str, key[1:]))}"
    return action if key[0] is None else f"{action} in context {key[0]}"


def _bernstein(values: list[float], width: float, tests: int) -> float:
    """How far the average of independent numbers can be from its mean, as one of so many tests."""
    log, count = math.log(4.0 * tests / _FAILURE), len(values)
    spread = math.sqrt(2.0 * float(np.var(values, ddof=1)) * log / count)
    return spread + 7.0 * width * log / (3.0 * (count - 1))


def check_chances(world: Environment) -> None:
    """A round draws equally often whatever is chosen, and settling it changes nothing."""
    state, (_, explore, chance) = world.world(), Streams.of(run_seed(13, 0))
    problem = world.problem(_ROUNDS)
    public, _ = uniform_policy(problem).begin(problem)
    for _ in range(_ROUNDS):
        context, before = state.offer(chance), chance.bit_generator.state
        after = []
        for _ in range(5):
            chance.bit_generator.state = before
            action = public.select(context, explore)
            reward = state.pay(context, action, chance)
            settled = state_bytes(state)
            state.settle(context, action, reward)
            require(state_bytes(state) == settled, world, "settle must change nothing")
            after.append(chance.bit_generator.state)
        alike = all(one == after[0] for one in after)
        require(alike, world, "pay must draw equally often whatever is chosen")


def check_compiled(world: Environment) -> None:
    """The same seed gives the same rounds: again, and in the compiled simulation, to the last bit."""
    problem, seed = world.problem(_ROUNDS), run_seed(14, 0)
    policy = uniform_policy(problem)
    plain, again = (
        drive(rehearse(policy, problem, seed=seed), world, seed, _ROUNDS).totals for _ in range(2)
    )
    require(plain == again, world, "the same seed must give the same rewards")
    for chunk in (7, _ROUNDS):
        totals = simulated_totals(policy, world, seed, _ROUNDS, chunk)
        require(totals == plain, world, f"the simulation (chunk {chunk}) must agree bitwise")


def check_uniform_regret(world: Environment) -> None:
    """Random actions lose what `uniform_regret` says, to half a percent and what chance allows."""
    policy = uniform_policy(world.problem(_UNIFORM_ROUNDS))
    trace = simulate(policy, world, _UNIFORM_ROUNDS, _UNIFORM_RUNS, seed=15, progress=False)
    found = trace.regret(policy.name())[:, -1] / _UNIFORM_ROUNDS
    quantile = float(scipy.special.stdtrit(_UNIFORM_RUNS - 1, 1.0 - _FAILURE / 2.0))
    error = quantile * float(found.std(ddof=1)) / math.sqrt(_UNIFORM_RUNS)
    said, mean = world.uniform_total(_UNIFORM_ROUNDS) / _UNIFORM_ROUNDS, float(found.mean())
    close = abs(mean - said) <= error + 0.005 * abs(said) + _ROUNDING
    require(
        close, world, f"uniform play lost {mean:.4g} ± {error:.2g} a round, uniform_regret is {said:.4g}"
    )


WORLD_CHECKS: tuple[Callable[[Environment], None], ...] = (
    check_world_recipe,
    check_problem,
    check_rewards,
    check_settle,
    check_pay,
    check_pay_many,
    check_chances,
    check_compiled,
    check_uniform_regret,
)
