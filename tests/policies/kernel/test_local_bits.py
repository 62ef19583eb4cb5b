"""Local kernel bandits under ε-DP: one bit about one random direction."""

import copy
import math
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.audit import replay, report_cost
from dpbandits.audit.broken_kernels import TellsTheAction
from dpbandits.mechanisms.randomized_response import heads
from dpbandits.policies.kernel.local_kernel_thompson import _SIDE, Public
from dpbandits.problems.kernel_contexts import bounded

POLICY = dpb.local.LocalKernelThompson(privacy=dpb.PureDP(2.0))
PROBLEM = dpb.KernelContexts.testing.example(None)
PEOPLE = 20_000


def messages(policy: Any, context: int, action: int, reward: float) -> Any:
    """What so many people like her send on the first broadcast."""
    state, noise = policy.begin(PROBLEM)[0], np.random.default_rng(3)
    return np.array([state.report(context, action, reward, noise)[0].copy() for _ in range(PEOPLE)])


def test_messages_are_about_her_reward_and_as_wide_as_they_say() -> None:
    """Each of 2·m numbers is off by 5 standard errors with probability below 6·10⁻⁷."""
    state = POLICY.begin(PROBLEM)[0]
    pair, reward = 1 * state.table.shape[1], -0.6 * PROBLEM.max_reward
    sent = messages(POLICY, 1, 0, reward)
    expected = math.tanh(1.0) * _SIDE * state.maps[pair] * reward / PROBLEM.max_reward

    def off(mean: Any) -> float:
        return float(np.abs(sent.mean(axis=0) - mean).max() * math.sqrt(PEOPLE))

    assert off(expected) < 5.0
    assert off(-expected) > 50.0 and off(2.0 * expected) > 25.0  # controls
    # A square of a standard normal has variance 2.
    assert np.abs((sent**2).mean(axis=0) - 1.0).max() < 5.0 * math.sqrt(2.0 / PEOPLE)


@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_no_set_of_messages_is_likelier_than_the_budget_allows(reward: float) -> None:
    """Between ends, the side of v she sends on is told by odds of e², to within 5 standard errors."""
    state = POLICY.begin(PROBLEM)[0]
    sides = [
        (messages(POLICY, 0, 0, sign * PROBLEM.max_reward) @ state.maps[0] > 0.0).mean()
        for sign in (reward, -reward)
    ]
    odds = max(sides) / min(sides)
    error = odds * math.sqrt(1.0 / (PEOPLE * min(sides)))
    assert abs(odds - math.exp(2.0)) < 5.0 * error
    assert abs(odds - math.exp(2.3)) > 5.0 * error  # control: it would be seen


def test_the_server_knows_what_an_epoch_measured() -> None:
    """Its sum is S ≈ N(Gθ, T·I): along Gθ, and by the length of what is left, to 5 deviations."""
    world = dpb.worlds.KernelWorld.standard()
    problem = world.problem(None)
    policy = dpb.local.LocalKernelThompson(privacy=dpb.PureDP(4.0), first_epoch=2 * PEOPLE)
    state, means = policy.begin(problem)[0], world.means()
    noise, rounds = np.random.default_rng(5), 2 * PEOPLE
    for context, action, chance in zip(
        noise.integers(20, size=rounds),
        noise.integers(20, size=rounds),
        noise.random(rounds),
        strict=True,
    ):
        reward = 1.0 if chance < 0.5 + 0.5 * means[context, action] else -1.0
        state.receive(state.report(int(context), int(action), reward, noise))
    rows, size = state.features.rows, state.total.size
    theta = np.linalg.lstsq(rows, means.ravel(), rcond=1e-9)[0]
    gain = rounds / 400 * math.tanh(2.0) * _SIDE * state.maps.T @ rows

    def off(claimed: Any) -> float:
        """By how many standard errors the sum, along what is expected of it, is not that long."""
        expected = claimed @ theta
        length = float(np.linalg.norm(expected))
        return abs(float(state.total @ expected) / length - length) / math.sqrt(rounds)

    assert off(gain) < 5.0
    assert off(1.5 * gain) > 5.0 and off(0.5 * gain) > 5.0  # controls
    left = float(np.sum((state.total - gain @ theta) ** 2)) / rounds
    assert abs(left - size) < 5.0 * math.sqrt(2.0 * size)
    before = state.posterior.precision.copy()
    state.pause(None, noise)
    np.testing.assert_allclose(
        state.posterior.precision - before, gain.T @ gain / rounds, atol=1e-6 * rounds
    )
    # What is asked next: in the new coordinates all directions are as uncertain.
    root = np.linalg.cholesky(state.posterior.precision)
    vectors = np.linalg.solve(root, rows.T).T
    np.testing.assert_allclose(state.maps, vectors / np.linalg.norm(vectors, axis=1)[:, None], atol=1e-9)


class AsksAboutHerself(dpb.local.LocalKernelThompson):
    """Turns the direction to her own side first, which tells what she chose."""

    abstract = True

    class state(Public):
        def report(self, context: int, action: int, reward: float, noise: Any) -> Any:
            pair = context * self.table.shape[1] + action
            for axis in range(self.message.size):
                self.message[axis] = noise.normal(0.0, self.scale)
            if self.message @ self.maps[pair] < 0.0:
                self.message[:] = -self.message
            half = 0.5 * bounded(reward, self.posterior.bound) / self.posterior.bound
            if noise.binomial(1, heads(half, self.bias)) == 0:
                self.message[:] = -self.message
            return (self.message,)


class TrustsTheLengthOfMaps(dpb.local.LocalKernelThompson):
    """Weighs her reward by how far the direction goes along the map she was told."""

    abstract = True

    class state(Public):
        def report(self, context: int, action: int, reward: float, noise: Any) -> Any:
            pair = context * self.table.shape[1] + action
            for axis in range(self.message.size):
                self.message[axis] = noise.normal(0.0, self.scale)
            half = 0.5 * bounded(reward, self.posterior.bound) / self.posterior.bound
            chance = heads(half * float(self.message @ self.maps[pair]), self.bias)
            if noise.binomial(1, min(1.0, max(0.0, chance))) == 0:
                self.message[:] = -self.message
            return (self.message,)


def test_people_who_give_themselves_away_are_caught() -> None:
    problem = dpb.KernelContexts.testing.example(48)
    assert report_cost(POLICY, problem) == pytest.approx(2.0, rel=1e-9)
    for wrong in (AsksAboutHerself, TrustsTheLengthOfMaps):
        assert report_cost(wrong(privacy=dpb.PureDP(2.0)), problem) > 4.0


def tells(told: int) -> Any:
    """A policy whose messages say whether she had this action."""

    class Tells(dpb.local.LocalKernelThompson):
        abstract = True

        class state(Public):
            def report(self, context: int, action: int, reward: float, noise: Any) -> Any:
                (message,) = super().report(context, action, reward, noise)
                message[0] = abs(message[0]) * (1.0 if action == told else -1.0)
                return (message,)

    return Tells


@pytest.mark.parametrize("budget", [dpb.PureDP(2.0), dpb.GaussianDP(2.0)], ids=str)
def test_a_message_that_tells_the_action_is_caught(budget: dpb.Budget) -> None:
    """Both people have the same one in an honest first table: only with different ones is it seen."""
    problem = dpb.KernelContexts.testing.example(48)
    for wrong in (TellsTheAction, *map(tells, range(len(problem.actions)))):
        assert report_cost(wrong(privacy=budget), problem) == math.inf
        assert not replay(wrong(privacy=budget), problem, rounds=20, thorough=False).private
    honest = dpb.local.LocalKernelThompson(privacy=budget)
    assert report_cost(honest, problem) == pytest.approx(2.0, rel=1e-9)


def test_a_save_of_the_server_goes_on_alike() -> None:
    policy = dpb.local.LocalKernelThompson(privacy=dpb.PureDP(1.0), first_epoch=3)
    server = policy.start(PROBLEM, seed=1)
    for number in range(8):
        person = policy.person(PROBLEM, server.broadcast(), seed=number)
        person.select(number % 2)
        server.receive(person.report(1.0))
    other = policy.restore(PROBLEM, server.snapshot())
    kept = copy.deepcopy(server.broadcast())
    assert other.broadcast() == kept and policy.start(PROBLEM, broadcast=kept).broadcast() == kept
