"""CAPRI and kernel Thompson sampling: exact sensitivity, textbook estimates, the local model."""

import copy
import dataclasses
import inspect
import math
import subprocess
import sys
from itertools import product
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest
from kernel_grids import GRID, KERNELS, dense

import dpbandits as dpb
from dpbandits.audit import replay, report_cost
from dpbandits.audit.broken_kernels import BROKEN_KERNELS, RealisedDesign, SupportOnly, TellsTheAction
from dpbandits.audit.recording import ForcedNoise, RecordingNoise, Steer
from dpbandits.audit.replay import draws_cost
from dpbandits.engine import NoSecret, pause_if_due, state_bytes
from dpbandits.errors import InvalidInput
from dpbandits.mechanisms.rounding import rounded
from dpbandits.policies.kernel import local_capri
from dpbandits.policies.kernel.capri import printed_deviation
from dpbandits.policies.kernel.shared import posterior, projection
from dpbandits.policies.kernel.shared.epochs import shares_of
from dpbandits.policies.testing import short_form
from dpbandits.privacy.calibration import limit_of
from dpbandits.problems.kernel_contexts import bounded

BUDGET = dpb.ApproxDP(1.0, 1e-5)


def random_problem(seed: int) -> dpb.KernelContexts:
    """A few contexts, of which some may never come, a few actions, any kernel, any bound."""
    chance = np.random.default_rng(seed)
    contexts, actions = (chance.random((n, 2)) for n in (chance.integers(1, 5), chance.integers(2, 5)))
    weights = chance.random(len(contexts)) * (chance.random(len(contexts)) < 0.7)
    return dpb.KernelContexts(
        KERNELS[seed % len(KERNELS)],
        contexts,
        actions,
        weights=None if weights.sum() == 0 else weights,
        max_reward=float(chance.choice([0.5, 1.0, 3.0])),
        max_rank=int(chance.choice([3, 512])),
    )


def released(state: Any, secret: Any) -> RecordingNoise:
    """The draws of the policy's own pause on a copy of its state."""
    noise = RecordingNoise(np.random.default_rng(1), Steer())
    type(state).pause(copy.deepcopy(state), copy.deepcopy(secret), noise)
    return noise


def largest_cost(policy: dpb.Policy, problem: dpb.KernelContexts, epochs: int) -> float:
    """By brute force, what replacing one (context, reward) costs, whatever her action: max over all
    contexts, active actions and rewards at both ends, before and after.
    """
    state, secret = policy.begin(problem)
    pause = type(state).pause
    generator, rewards = np.random.default_rng(2), problem.max_reward * np.array([-1.0, 1.0])
    for _ in range(epochs):
        secret.sums[:] = generator.choice(rewards, problem.pairs) * state.next_pause[0] / problem.pairs
        pause(state, secret, generator)
    played = state.active.ravel() if hasattr(state, "active") else np.ones(problem.pairs, bool)
    locations, scale = [], 0.0
    for pair, reward in product(np.flatnonzero(played), rewards):
        secret.sums[:] = 0.0
        secret.sums[pair] = reward
        first = released(state, secret).draws[0]
        locations.append(first.location)
        scale = float(np.max(first.scale))
    points = np.array(locations)
    gaps = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return math.sqrt(gaps.max()) / scale


POLICIES = [
    dpb.KernelThompson(privacy=BUDGET, draws=5, first_epoch=30),
    dpb.kernels.Capri(privacy=BUDGET, first_epoch=30, width=0.01),
    dpb.kernels.Capri(privacy=BUDGET, first_epoch=30, width=0.01, copies=True, tau=0.3),
]


@pytest.mark.parametrize("policy", POLICIES, ids=["thompson", "capri", "capri with copies"])
@pytest.mark.parametrize("seed", range(16))
def test_the_exact_cost_of_one_person_is_the_declared_one(policy: dpb.Policy, seed: int) -> None:
    problem = random_problem(seed)
    declared = limit_of(policy.guarantee(problem).budget)
    assert 0.9 * declared <= largest_cost(policy, problem, epochs=1 + seed % 3) <= declared * (1 + 1e-9)


def test_the_printed_sensitivity_set_costs_too_much_where_a_context_never_comes() -> None:
    problem = dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID, weights=(1, 1, 0, 0, 0))
    wrong = SupportOnly(privacy=BUDGET, first_epoch=30)
    assert largest_cost(wrong, problem, epochs=2) > 1.2 * limit_of(BUDGET)
    assert largest_cost(
        dpb.kernels.Capri(privacy=BUDGET, first_epoch=30), problem, epochs=2
    ) == pytest.approx(limit_of(BUDGET))


def test_broken_kernel_policies_are_caught_by_the_replay() -> None:
    assert (SupportOnly, RealisedDesign, TellsTheAction) == BROKEN_KERNELS
    support, realised, tells = (replay(kind(privacy=dpb.GaussianDP(1.0))) for kind in BROKEN_KERNELS)
    assert support.failure is None and support.cost > 1.01
    assert "public state differs" in str(realised.failure)
    assert "public state differs" in str(tells.failure)


def test_printed_noise_reports_the_guarantee_it_really_has() -> None:
    problem = dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID, horizon=10_000)
    printed = dpb.kernels.Capri(privacy=BUDGET, calibration="paper", first_epoch=3000, width=0.01)
    held = printed.guarantee(problem).budget
    assert isinstance(held, dpb.GaussianDP)
    assert 13 < limit_of(BUDGET) / held.mu < 19  # errata: 13 to 18 times too much noise
    # S spans everything in so long an epoch, so that σ̃ is |u| and the noise just what is reported.
    assert largest_cost(printed, problem, epochs=2) == pytest.approx(held.mu)


@pytest.mark.parametrize("seed", range(8))
def test_printed_noise_is_never_too_little(seed: int) -> None:
    """Whatever S spans, and for contexts that never come, where the printed maximum is not taken."""
    problem = dataclasses.replace(random_problem(seed), horizon=10_000)
    printed = dpb.kernels.Capri(privacy=BUDGET, calibration="paper", first_epoch=4 + seed, tau=1.0)
    held = limit_of(printed.guarantee(problem).budget)
    assert 0.0 < largest_cost(printed, problem, epochs=1 + seed % 3) <= held * (1 + 1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_the_estimator_is_the_textbooks(kernel: dpb.kernels.Kernel, repeated: bool) -> None:
    """k_S(w)ᵀ (K_SR K_RS + τK_SS)⁻¹ K_SW y, the dense formula of the paper, to 1e-8."""
    problem = dpb.KernelContexts(kernel, GRID[:3], GRID[:4])
    matrix, chance, tau = dense(problem), np.random.default_rng(5), 0.7
    s = chance.choice(12, 8, replace=False)
    r, w = (chance.choice(12, 8, replace=repeated) for _ in range(2))
    if repeated:
        s = np.concatenate([s, s[:5]])
    y = chance.choice([-1.0, 1.0], 8)
    once = np.unique(s)  # the printed matrix is singular where S has a pair twice
    if np.linalg.matrix_rank(matrix[np.ix_(once, once)], tol=1e-9) < once.size:
        # Of singular kernels too: as many pairs as they have dimensions span the same.
        _, order = _pivots(matrix[np.ix_(once, once)])
        once = once[order]
    m = matrix[np.ix_(once, r)] @ matrix[np.ix_(r, once)] + tau * matrix[np.ix_(once, once)]
    textbook = matrix[:, once] @ np.linalg.solve(m, matrix[np.ix_(once, w)] @ y)
    rows = problem.features().rows
    drawn, counts, sums = np.bincount(s, minlength=12), np.bincount(r, minlength=12), np.zeros(12)
    np.add.at(sums, w, y)
    maps, _ = projection.whitened(*projection.projected(rows, drawn, counts), tau)
    np.testing.assert_allclose(projection.estimate(maps, maps.T @ sums), textbook, atol=1e-8)
    # σ̃ of (6), which bounds the map that is used, over all contexts and over the first alone.
    inverse = np.linalg.inv(matrix[np.ix_(once, once)])
    cross = inverse @ matrix[np.ix_(once, r)]
    middle = np.linalg.inv(tau * np.eye(r.size) + matrix[np.ix_(r, once)] @ cross)
    v = cross @ middle @ cross.T
    printed = (matrix.diagonal() - np.einsum("ws,st,wt->w", matrix[:, once], v, matrix[:, once])) / tau
    assert np.all(np.einsum("wm,wm->w", maps, maps) <= printed + 1e-8)
    for weights, pairs in (((1.0, 1.0, 1.0), 12), ((1.0, 0.0, 0.0), 4)):
        public = SimpleNamespace(
            features=problem.features(),
            confidence=SimpleNamespace(tau=tau),
            weights=np.array(weights),
            active=np.ones((3, 4), np.bool_),
        )
        moved, _ = projection.projected(rows, drawn, counts)
        found = printed_deviation(public, maps, moved)
        assert found == pytest.approx(math.sqrt(printed[:pairs].max()), abs=1e-7)


def _pivots(matrix: np.ndarray) -> tuple[int, np.ndarray]:
    """Rows that span all others."""
    chosen: list[int] = []
    for row in range(len(matrix)):
        trial = [*chosen, row]
        if np.linalg.matrix_rank(matrix[np.ix_(trial, trial)], tol=1e-9) == len(trial):
            chosen = trial
    return len(chosen), np.array(chosen)


def test_the_posterior_is_the_textbooks_where_everything_is_known() -> None:
    """One release, without noise, of one pair played n times: the mean of n rewards, shrunk."""
    rows, shares = np.eye(2), np.array([1.0, 0.0])
    z = posterior.design(rows, shares, 50)
    precision, evidence = posterior.absorb(
        np.eye(2) / 0.1, np.zeros(2), z, np.array([20.0, 0.0]), 1.0, 9.0
    )
    # A measurement 20 of 50θ with variance 50 + 9, prior variance 0.1.
    mean, variance = np.linalg.solve(precision, evidence), np.linalg.inv(precision)
    weight = 50.0**2 / 59.0
    assert mean == pytest.approx([weight * (20.0 / 50.0) / (weight + 10.0), 0.0])
    assert variance.diagonal() == pytest.approx([1.0 / (weight + 10.0), 0.1])
    drawn = posterior.samples(
        precision, evidence, np.random.default_rng(1).normal(size=(2, 200_000)), 1.0
    )
    assert np.cov(drawn) == pytest.approx(variance, abs=5 * 0.1 * math.sqrt(2 / 200_000))


@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_kernel_ucb_is_the_gaussian_process(delay: float) -> None:
    """Equations (2) and (3) of the paper, once nothing waits."""
    problem = dpb.KernelContexts(dpb.kernels.Matern(0.3), GRID[:2], GRID, max_reward=2.0)
    learner = dpb.KernelUCB(delay=delay, reward_variance=0.25).start(problem, seed=1)
    chance, pairs, rewards = np.random.default_rng(3), [], []
    for _ in range(60):
        context = int(chance.integers(2))
        action = learner.select(context)
        reward = float(chance.choice([-2.0, 2.0]))
        learner.update(action, reward)
        pairs.append(5 * context + action)
        rewards.append(reward)
    state = learner._public
    kept: list[int] = []
    for pair in set(pairs):  # those that wait are the last ones of their pair
        places = [index for index, one in enumerate(pairs) if one == pair]
        kept += places[: int(state.seen[pair])]
    w, y = np.array(pairs)[kept], np.array(rewards)[kept]
    k = 4.0 * dense(problem)
    solved = np.linalg.solve(k[np.ix_(w, w)] + 1.0 * np.eye(w.size), np.column_stack([y, k[w]]))
    np.testing.assert_allclose(state.mean, k[:, w] @ solved[:, 0], atol=1e-8)
    np.testing.assert_allclose(state.variance, np.diag(k - k[:, w] @ solved[:, 1:]), atol=1e-8)
    assert w.size == 60 or delay > 0.0


def test_calibrated_widths_keep_the_best_actions_and_narrow_ones_do_not() -> None:
    """At width 1 the best action of some context is lost in a tenth of the runs at most.

    Under that, more than 40 of 200 runs lose one with probability below 10⁻⁵. The control, at a
    twentieth of the width, must lose it that often.
    """
    assert _runs_that_lost(1.0) <= 40
    assert _runs_that_lost(0.05) > 40


def _runs_that_lost(width: float) -> int:
    world = dpb.worlds.KernelWorld(dpb.kernels.Matern(0.3), GRID[:3], GRID, weights=(3, 2, 1))
    problem, means, lost = world.problem(None), world.means().ravel(), 0
    policy = dpb.kernels.Capri(privacy=dpb.GaussianDP(1.0), width=width)
    best = world.means().argmax(axis=1)
    for run in range(200):
        chance = np.random.default_rng(run)
        state, secret = policy.begin(problem)
        for _ in range(5):  # a whole epoch at a time: who came, and what they sum to
            state.pause(secret, chance)
            shares = shares_of(state.table, state.weights)
            counts = chance.multinomial(int(state.length[0]), shares)
            secret.sums[:] = 2.0 * chance.binomial(counts, 0.5 + means / 2.0) - counts
        state.pause(secret, chance)
        lost += not state.active[np.arange(3), best].all()
    return lost


def test_printed_confidence_never_drops_anything_and_says_until_when() -> None:
    world = dpb.worlds.KernelWorld.standard()
    problem = world.problem(10**6)
    printed = dpb.kernels.Capri(privacy=BUDGET, calibration="paper")
    assert printed.plays_uniform_below(problem) > 10**8
    state, secret = printed.begin(problem)
    assert printed.schedule(problem) == 1000
    noise = np.random.default_rng(1)
    for _ in range(4):
        state.pause(secret, noise)
        secret.sums[:] = 1e3 * np.sign(world.means()).ravel()
    assert state.active.all()
    for wrong in (dpb.GaussianDP(1.0), dpb.NonPrivate()):
        with pytest.raises(InvalidInput, match="ApproxDP"):
            dpb.kernels.Capri(privacy=wrong, calibration="paper").start(problem)
    with pytest.raises(InvalidInput, match="horizon"):
        printed.start(world.problem(None))


LOCAL = [
    dpb.local.LocalKernelThompson(privacy=BUDGET),
    dpb.local.LocalKernelThompson(privacy=dpb.PureDP(1.0)),
    dpb.local.LocalCapri(privacy=BUDGET),
]


@pytest.mark.parametrize("policy", LOCAL, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_a_report_costs_the_declared_budget_over_everybody(policy: Any, seed: int) -> None:
    """Every context, action and reward at ±B, on the server's own broadcast."""
    problem = random_problem(seed)
    state = policy.start(problem, seed=1)._public
    report, bound = type(state).report, problem.max_reward
    people = list(product(range(len(problem.contexts)), range(len(problem.actions)), (-bound, bound)))
    recorded = RecordingNoise(np.random.default_rng(1), Steer())
    sent = report(copy.deepcopy(state), *people[0], recorded)[0].tobytes()
    draws = []
    for person in people:
        forced = ForcedNoise(recorded.draws)
        assert report(copy.deepcopy(state), *person, forced)[0].tobytes() == sent
        draws.append(forced.draws)
    costs = [
        draws_cost(list(zip(one, other, strict=True)), policy.privacy)
        for one, other in product(draws, draws)
    ]
    declared = limit_of(policy.privacy)
    assert 0.9 * declared <= max(costs) <= declared * (1 + 1e-9)


@pytest.mark.parametrize("policy", LOCAL, ids=str)
def test_with_the_same_messages_the_server_is_in_the_same_state(policy: Any) -> None:
    problem = dpb.KernelContexts.testing.example(None)
    policy = short_form(policy)
    servers = [policy.start(problem, seed=1) for _ in range(2)]
    for round_ in range(30):
        # Two persons who differ in everything; the noise of the second is forced to the same message.
        states = [copy.deepcopy(server._public) for server in servers]
        report, select = (getattr(type(states[0]), name) for name in ("report", "select"))
        recorded = RecordingNoise(np.random.default_rng(round_), Steer())
        explore = np.random.default_rng(round_)
        one = report(states[0], 0, select(states[0], 0, explore), 2.0, recorded)
        forced = ForcedNoise(recorded.draws)
        other = report(states[1], 1, select(states[1], 1, explore), -2.0, forced)
        assert one[0].tobytes() == other[0].tobytes()
        for server, message in zip(servers, (one, other), strict=True):
            server._rounds += 1
            server._public.receive((message[0].copy(),))
            pause_if_due(server._public, server._secret, server._streams.noise, server._rounds)
        assert state_bytes(servers[0]._public) == state_bytes(servers[1]._public)
    assert state_bytes(servers[0]._secret) == []


@pytest.mark.parametrize("policy", LOCAL, ids=str)
def test_the_server_has_no_method_that_takes_a_context_or_a_reward(policy: Any) -> None:
    server = policy.start(dpb.KernelContexts.testing.example(None))
    methods = {name: m for name, m in inspect.getmembers(server, callable) if not name.startswith("_")}
    assert set(methods) == {"broadcast", "receive", "released", "snapshot"}
    assert list(inspect.signature(methods["receive"]).parameters) == ["message"]
    assert list(inspect.signature(methods["broadcast"]).parameters) == []
    assert list(inspect.signature(methods["released"]).parameters) == []


def _send(public: Any, pair: int, value: float, noise: Any) -> Any:
    for axis in range(public.message.size):
        drawn = noise.normal(value * public.maps[pair, axis], public.scale)
        public.message[axis] = rounded(drawn, public.step)
    return (public.message,)


class TrustsTheServersMap(dpb.local.LocalCapri):
    """Sends whatever length the broadcast map gives her term."""

    abstract = True

    class state(local_capri.Public):
        def report(self, context: int, action: int, reward: float, noise: Any) -> Any:
            pair = context * self.table.shape[1] + action
            return _send(self, pair, bounded(reward, self.confidence.bound), noise)

    def begin(self, problem: dpb.KernelContexts) -> Any:
        public, secret = super().begin(problem)
        return self.state(*public), secret


class TrustsWhatIsActive(dpb.local.LocalCapri):
    """Shortens her term by the longest one of the pairs that the broadcast says are active."""

    abstract = True

    class state(local_capri.Public):
        def report(self, context: int, action: int, reward: float, noise: Any) -> Any:
            pair = context * self.table.shape[1] + action
            norms = np.sqrt(np.sum(self.maps**2, axis=1))
            longest = max(1.0, float(np.max(norms[self.active.ravel()], initial=0.0)))
            return _send(self, pair, bounded(reward, self.confidence.bound) / longest, noise)

    def begin(self, problem: dpb.KernelContexts) -> Any:
        public, secret = super().begin(problem)
        return self.state(*public), secret


class SendsLastBits(dpb.local.LocalKernelThompson):
    """Does not round."""

    abstract = True

    def begin(self, problem: dpb.KernelContexts) -> Any:
        public, secret = super().begin(problem)
        return public._replace(step=0.0), secret


def test_no_broadcast_makes_a_message_cost_more_and_a_trusting_person_is_caught() -> None:
    problem = dpb.KernelContexts.testing.example(48)
    for policy in LOCAL:
        assert report_cost(policy, problem) <= limit_of(policy.privacy) * (1 + 1e-9)
    for kind in (TrustsTheServersMap, TrustsWhatIsActive):
        assert report_cost(kind(privacy=BUDGET), problem) > 10 * limit_of(BUDGET)
    assert report_cost(SendsLastBits(privacy=BUDGET), problem) == math.inf


@pytest.mark.parametrize("policy", LOCAL, ids=str)
def test_messages_that_no_report_can_give_are_refused(policy: Any) -> None:
    problem = dpb.KernelContexts.testing.example(None)
    size = problem.features().rows.shape[1]
    assert policy.parse_message(problem, [[0.0] * size])[0].shape == (size,)
    for wrong in ([], [0.0] * size, [[0.0] * (size + 1)], [["a"] * size], [[1e6] * size], "x"):
        with pytest.raises(InvalidInput):
            policy.parse_message(problem, wrong)


def test_a_broadcast_does_not_carry_what_everybody_can_make() -> None:
    problem = dpb.KernelContexts.testing.example(None)
    server = LOCAL[0].start(problem)
    assert b"features" not in server.broadcast() and b"table" in server.broadcast()


def test_a_local_policy_is_a_sibling_with_a_guarantee_of_its_own() -> None:
    assert not issubclass(dpb.local.LocalCapri, dpb.kernels.Capri)
    assert not issubclass(dpb.local.LocalKernelThompson, dpb.KernelThompson)
    problem = dpb.KernelContexts.testing.example(None)
    joint = dpb.kernels.Capri(privacy=BUDGET).guarantee(problem)
    local = dpb.local.LocalCapri(privacy=BUDGET).guarantee(problem)
    assert "the decisions for everyone else" in str(joint).lower()
    assert "every message" in str(local).lower() and "one person's context and reward" in str(local)


ODD = {
    "singular kernel": dpb.KernelContexts(dpb.kernels.LinearKernel(), GRID, GRID),
    "repeated points": dpb.KernelContexts(dpb.kernels.Matern(0.2), (*GRID, *GRID), (GRID[0], *GRID)),
    "one action": dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID[:1]),
    "one context": dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID[:1], GRID),
    "shorter than the first epoch": dpb.KernelContexts(dpb.kernels.Matern(0.2), GRID, GRID, horizon=20),
    "kernel above 1": dpb.KernelContexts(dpb.kernels.PolynomialKernel(3, 5.0), GRID, GRID),
    "a context that never comes": dpb.KernelContexts(
        dpb.kernels.Matern(0.2), GRID[:2], GRID, weights=(1, 0)
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("privacy", [BUDGET, dpb.NonPrivate()], ids=str)
def test_odd_problems_run(name: str, privacy: dpb.Budget) -> None:
    problem = ODD[name]
    rounds = problem.horizon or 120
    for policy in (
        dpb.KernelThompson(privacy=privacy, first_epoch=25, draws=10),
        dpb.kernels.Capri(privacy=privacy, first_epoch=25, width=0.01),
        dpb.kernels.Capri(privacy=privacy, first_epoch=25, width=0.01, copies=True),
        dpb.KernelUCB(),
    ):
        learner, chance = policy.start(problem, seed=1), np.random.default_rng(1)
        for _ in range(rounds):
            action = learner.select(int(chance.integers(len(problem.contexts))))
            assert 0 <= action < len(problem.actions)
            learner.update(action, float(chance.choice([-1.0, 1.0])))
        for part in (learner._public.table,) if hasattr(learner._public, "table") else ():
            assert np.isfinite(part).all() and (part[:, -1] == 1.0).all()


def test_what_is_left_may_have_no_features_or_tiny_ones() -> None:
    """Only an action without features stays, or one whose squares underflow: the map has norm 1 or 0."""
    for left, norm in ((0.0, 0.0), (3e-162, 1.0), (1e-300, 1.0)):
        problem = dpb.KernelContexts(
            dpb.kernels.LinearKernel(on="action"), GRID, ((left, left), (1.0, 1.0))
        )
        state, secret = dpb.kernels.Capri(privacy=BUDGET, first_epoch=30).begin(problem)
        state.active[:, 1] = False
        state.table[...] = 1.0
        state.pause(secret, np.random.default_rng(1))
        found = np.sqrt((state.maps**2).sum(axis=1)).reshape(state.active.shape)
        assert (found[:, 1] == 0.0).all() and found[:, 0] == pytest.approx(norm)
        assert all(np.isfinite(part).all() for part in (state.maps, state.margin))


def test_bad_options_are_refused_by_name() -> None:
    for kind, options in (
        (dpb.kernels.Capri, {"calibration": "half"}),
        (dpb.kernels.Capri, {"copies": "guessed"}),
        (dpb.kernels.Capri, {"width": 0.0}),
        (dpb.kernels.Capri, {"tau": -1.0}),
        (dpb.kernels.Capri, {"failure": 1.0}),
        (dpb.kernels.Capri, {"first_epoch": 0}),
        (dpb.KernelThompson, {"growth": 0.0}),
        (dpb.KernelThompson, {"prior": 0.0}),
        (dpb.KernelThompson, {"spread": 0.0}),
        (dpb.KernelThompson, {"draws": 0}),
    ):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            kind(privacy=BUDGET, **options)


def test_epoch_steps_keep_the_array_api_standard() -> None:
    """On strict arrays, which have nothing beyond the standard, with the same results."""
    xp, chance = array_api_strict, np.random.default_rng(4)
    rows, shares = chance.random((6, 4)), np.full(6, 1 / 6)
    drawn, counts = np.array([1, 0, 2, 0, 1, 0]), np.array([2, 1, 1, 0, 0, 1])
    normals, sums = chance.normal(size=(4, 7)), chance.normal(size=4)

    def steps(make: Any) -> list[np.ndarray]:
        r, q, d, c, n, b = (make(x) for x in (rows, shares, drawn, counts, normals, sums))
        z = posterior.design(r, q, 30)
        p, h = posterior.absorb(make(np.eye(4)), make(np.zeros(4)), z, b, 1.0, 2.0)
        moved, zz = projection.projected(r, d, c)
        maps, back = projection.whitened(moved, zz, 0.5)
        values = projection.estimate(maps, b)
        spans = projection.differences(back, 2)
        shaped = make(np.asarray(values)).__array_namespace__().reshape(values, (2, 3))
        kept = projection.keep(make(np.ones((2, 3), bool)), shaped, spans)
        table = posterior.votes(r, posterior.samples(p, h, n, 0.5), 2)
        return [np.asarray(x) for x in (z, p, h, maps, back, values, spans, kept, table)]

    for mine, strict in zip(steps(np.asarray), steps(xp.asarray), strict=True):
        np.testing.assert_allclose(mine, strict, atol=1e-12)


_RUN = """
import sys, numpy as np, dpbandits as dpb
from dpbandits.simulation.run import play
from dpbandits.engine.streams import run_seed
from dpbandits.policies.testing import short_form
world, budget = dpb.worlds.KernelWorld.standard("matern", seed=1), dpb.ApproxDP(5.0, 1e-5)
for policy in (dpb.KernelThompson(privacy=budget), dpb.kernels.Capri(privacy=budget, width=0.1)):
    played = play(policy, world, np.arange(1000, 9001, 1000), run_seed(1, 0))
    print([value.hex() for value in played.curves[:, 0].tolist()])
"""


def test_results_do_not_depend_on_the_number_of_blas_threads() -> None:
    found = []
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        import os

        environment = os.environ | dict.fromkeys(names, threads)
        run = [sys.executable, "-c", _RUN]
        found.append(subprocess.run(run, env=environment, check=True, capture_output=True).stdout)
    assert found[0] == found[1] and b"0x" in found[0]


def test_no_secret_is_left_in_the_local_model() -> None:
    for policy in LOCAL:
        assert isinstance(policy.begin(dpb.KernelContexts.testing.example(None))[1], NoSecret)
