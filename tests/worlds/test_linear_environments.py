"""Linear worlds: decision sets as defined, right means, uniform regret, common random numbers."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import dpbandits as dpb
from dpbandits.engine import Streams
from dpbandits.errors import InvalidInput
from dpbandits.policies.testing import rehearse
from dpbandits.testing.driving import drive, simulated_totals
from dpbandits.worlds.linear.spheres import band_mass, band_mean, largest_mean
from dpbandits.worlds.linear.worlds import LinearEnvironment

pytestmark = pytest.mark.slow

WORLDS: dict[str, LinearEnvironment] = {
    "sphere": dpb.worlds.SphereContexts(),
    "no gap": dpb.worlds.SphereContexts(3, 4, 0.0),
    "gaussian": dpb.worlds.SphereContexts(4, 6, 0.3, "gaussian"),
    "fixed": dpb.worlds.FixedActions(4, 6, seed=3),
    "public": dpb.worlds.FixedActions(4, 6, public=True, seed=3),
    "low rank": dpb.worlds.LowRankContexts(6, 5, 2),
    "switching": dpb.worlds.SwitchingContexts(5, 6, switch=40),
    "switching, unseen": dpb.worlds.SwitchingContexts(5, 6, switch=40, tilt=0.0),
    "rotating": dpb.worlds.RotatingContexts(5, 6, turn=90),
    "disjoint": dpb.worlds.DisjointContexts(3, 4),
}
each_world = pytest.mark.parametrize("environment", WORLDS.values(), ids=WORLDS)


def rounds_of(environment: LinearEnvironment, rounds: int, seed: int = 1, action: int = 0) -> Any:
    """(features, means, best, theta, reward) of each round."""
    world, chance = environment.world(), Streams.of(seed).chance
    offer, pay = (getattr(type(world), verb) for verb in ("offer", "pay"))
    for _ in range(rounds):
        context = offer(world, chance)
        reward = pay(world, context, action, chance)
        features = None if context is None else context[0].copy()
        yield features, world.shown.means.copy(), world.shown.best[0], world.shown.theta.copy(), reward


@each_world
def test_what_is_shown_is_what_pays(environment: LinearEnvironment) -> None:
    """Means are ⟨x, θ*⟩ of one θ* a run, the best is the best, and nothing exceeds what is declared."""
    problem: Any = environment.problem(100)  # with actions where they are public
    first = None
    for features, means, best, theta, reward in rounds_of(environment, 120):
        if features is None:
            features = problem.actions
        else:
            (taken,) = problem.context(features)
            assert (taken == features).all()  # a learner sees bit for bit what the compiled loop does
        # Of all actions, or of each arm.
        parameters = theta.reshape(-1, features.shape[1])
        np.testing.assert_allclose((features @ parameters.T).ravel(), means, atol=1e-11)
        assert best == means.max() and abs(means).max() <= 1.0
        assert abs(reward) <= problem.max_reward
        first = theta if first is None else first
        assert (theta == first).all()
    other = next(rounds_of(environment, 1, seed=2))[3]
    fresh = not isinstance(environment, dpb.worlds.FixedActions)
    assert (other != first).any() == fresh


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.5])
def test_the_gap_is_kept(gap: float) -> None:
    """One action pays ¾, all others between −¾ and ¾ − gap, and they come near both ends."""
    places, others = [], []
    for features, means, _, _, _ in rounds_of(dpb.worlds.SphereContexts(gap=gap), 400):
        lengths = np.linalg.norm(features, axis=1)
        np.testing.assert_allclose(lengths, 1.0, atol=1e-11)
        assert np.ptp(lengths) < 1e-14  # which is the best is not told by it
        places.append(int(means.argmax()))
        others.append(np.delete(means, places[-1]))
        assert means.max() == 0.75
    assert set(places) == set(range(25))
    assert -0.75 <= np.min(others) < -0.74 and 0.74 - gap < np.max(others) <= 0.75 - gap


@pytest.mark.parametrize(("dim", "gap"), [(2, 0.1), (3, 0.0), (4, 1.0), (5, 0.1), (8, 0.5), (11, 0.1)])
def test_others_have_the_law_of_their_band(dim: int, gap: float) -> None:
    """Kolmogorov–Smirnov at 1e-6; the law of another dimension is rejected."""
    seen = rounds_of(dpb.worlds.SphereContexts(dim, gap=gap), 600)
    means = np.concatenate([np.delete(m, m.argmax()) for _, m, *_ in seen])

    def law(dim: int) -> float:
        whole = band_mass(dim, -0.75, 0.75 - gap)
        return float(kstest(means, np.vectorize(lambda s: band_mass(dim, -0.75, s) / whole)).pvalue)

    assert law(dim) > 1e-6 > law(dim + 2)


def test_directions_are_uniform_across() -> None:
    """Kolmogorov–Smirnov at 1e-6 orthogonal to θ*; the law of another dimension is rejected."""
    seen = list(rounds_of(dpb.worlds.SphereContexts(), 400))
    means = np.concatenate([np.delete(m, m.argmax()) for _, m, *_ in seen])
    theta = seen[0][3]
    across = np.linalg.svd(theta[None, :])[2][1]  # a unit vector orthogonal to θ*
    best = np.array([f[m.argmax()] @ across for f, m, *_ in seen])
    rest = np.concatenate([np.delete(f, m.argmax(), axis=0) @ across for f, m, *_ in seen])
    # The orthogonal part of the optimal action is uniform on a sphere of 4 dimensions and radius √7/4.
    for parts in (best / np.sqrt(7 / 16), rest / np.sqrt(1.0 - means**2)):
        right, wrong = (
            kstest(parts, np.vectorize(lambda s, dim=dim: band_mass(dim, -1.0, np.clip(s, -1, 1))))
            for dim in (4, 2)
        )
        assert right.pvalue > 1e-6 > wrong.pvalue


@pytest.mark.parametrize("seed", range(5))
def test_a_fixed_set_has_one_length(seed: int) -> None:
    features, *_ = next(rounds_of(dpb.worlds.FixedActions(seed=seed), 1))
    assert np.ptp(np.linalg.norm(features, axis=1)) < 1e-14


@each_world
def test_rewards_have_the_means(environment: LinearEnvironment) -> None:
    """Within 5 standard deviations over 3000 rounds (error below 1e-6); the negative means are not."""
    seen = list(rounds_of(environment, 3000))
    means, rewards = (np.array([x[1][0] for x in seen]), np.array([x[4] for x in seen]))
    gaussian = getattr(environment, "rewards", "signs") == "gaussian"
    # Weighted by the mean, so that the sign of it counts: E[reward·mean] = mean².
    spread = np.sqrt((means**2 * (1.0 if gaussian else 1.0 - means**2)).sum())
    assert abs(((rewards - means) * means).sum()) < 5 * spread < abs(((rewards + means) * means).sum())
    if not gaussian:
        assert set(np.unique(rewards)) == {-1.0, 1.0}


@each_world
def test_uniform_regret_is_that_of_uniform_play(environment: LinearEnvironment) -> None:
    """The average over 60 runs (each a θ* of its own) is within 5 standard errors; 1.3 times is not."""
    finals = []
    for run in range(60):
        played = simulated_totals(
            dpb.linear.UniformActions(), environment, np.random.SeedSequence(run), 80, chunk=80
        )
        finals.append(played[0] / 80)
    error = np.std(finals, ddof=1) / np.sqrt(len(finals))
    stated = environment.uniform_regret()
    assert abs(np.mean(finals) - stated) < 5 * error + 2e-3
    assert abs(np.mean(finals) - 1.3 * stated) > 5 * error + 2e-3


@each_world
def test_two_policies_meet_the_same_world(environment: LinearEnvironment) -> None:
    """Whatever is chosen, the decision sets are the same; another seed gives others."""

    def shown(action: int, seed: int) -> bytes:
        seen = rounds_of(environment, 200, seed, action)
        return b"".join(means.tobytes() for _, means, *_ in seen)

    assert shown(0, 1) == shown(3, 1)
    if not isinstance(environment, dpb.worlds.FixedActions):
        assert shown(0, 1) != shown(0, 2)


@each_world
def test_plain_and_compiled_worlds_agree(environment: LinearEnvironment) -> None:
    policy, seed = dpb.linear.UniformActions(), np.random.SeedSequence(5)
    learner = rehearse(policy, environment.problem(300), seed=seed)
    assert drive(learner, environment, seed, 300).totals == simulated_totals(
        policy, environment, seed, 300, chunk=77
    )


def test_low_rank_contexts_have_their_rank() -> None:
    seen = np.concatenate([f for f, *_ in rounds_of(WORLDS["low rank"], 50)])
    assert np.linalg.matrix_rank(seen, tol=1e-9) == 2
    assert np.linalg.norm(seen, axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_contexts_switch_to_what_was_not_seen(tilt: float) -> None:
    """Up to the switch near a plane, afterwards near the three dimensions orthogonal to it."""
    environment = dpb.worlds.SwitchingContexts(5, 6, switch=40, tilt=tilt)
    features = [f for f, *_ in rounds_of(environment, 100)]
    before, after = np.concatenate(features[:40]), np.concatenate(features[40:])
    rows = np.linalg.svd(before)[2]
    for seen, inside, outside in ((before, rows[:2], rows[2:]), (after, rows[2:], rows[:2])):
        assert np.linalg.norm(seen, axis=1) == pytest.approx(1.0)
        # The plane is estimated from 240 actions, so it is off by a few hundredths of the tilt.
        found = np.linalg.norm(seen @ outside.T, axis=1)
        assert np.sqrt((found**2).mean()) == pytest.approx(tilt, abs=0.03)
        assert (np.linalg.norm(seen @ inside.T, axis=1) > 0.9).all()


def test_the_plane_turns_through_the_whole_space() -> None:
    """Each decision set is near a plane; neighbours are alike, the first and last are orthogonal."""
    rounds = 91
    planes = []
    for features, *_ in rounds_of(
        dpb.worlds.RotatingContexts(5, 200, turn=rounds - 1, tilt=0.1), rounds
    ):
        assert np.linalg.norm(features, axis=1) == pytest.approx(1.0)
        _, sizes, rows = np.linalg.svd(features, full_matrices=False)
        # 200 actions of tilt .1: all but 1 % of the squares are in the plane.
        assert (sizes[:2] ** 2).sum() / 200 == pytest.approx(0.99, abs=2e-3)
        planes.append(rows[:2].T @ rows[:2])
    near = [np.trace(a @ b) for a, b in itertools.pairwise(planes)]
    assert min(near) > 1.99 and np.trace(planes[0] @ planes[-1]) < 0.02
    # Every direction is visited equally long but those at the ends.
    assert np.linalg.eigvalsh(sum(planes) / rounds)[0] > 0.1


def test_disjoint_arms_share_one_context() -> None:
    environment = WORLDS["disjoint"]
    world, chance = environment.world(), np.random.default_rng(1)
    for _ in range(20):
        (context,) = world.offer(chance)
        assert context.shape == (1, 3)
        parameters = world.shown.theta.reshape(4, 3)
        np.testing.assert_allclose(np.linalg.norm(parameters, axis=1), 1.0)
        np.testing.assert_allclose(world.shown.means, parameters @ context[0])
        assert world.shown.best[0] == world.shown.means.max()


def test_private_and_public_sets_are_one_instance() -> None:
    private, public = dpb.worlds.FixedActions(seed=7), dpb.worlds.FixedActions(seed=7, public=True)
    features, means, *_ = next(rounds_of(private, 1))
    assert isinstance(public.problem(5), dpb.LinearActions)
    assert (public.problem(5).actions == features).all()
    assert (next(rounds_of(public, 1))[1] == means).all()
    assert private.uniform_regret() == public.uniform_regret()
    other = dataclasses.replace(private, seed=8)
    assert (next(rounds_of(other, 1))[1] != means).any()


def test_expectations_over_spheres() -> None:
    assert band_mean(3, -0.75, 0.65) == pytest.approx(-0.05)  # uniform in three dimensions
    assert band_mass(2, -1.0, 0.5) == pytest.approx(2 / 3)  # an arc of 240°
    assert largest_mean(3, 2) == pytest.approx(1 / 3)  # of two uniforms on [−1, 1]
    assert largest_mean(2, 1) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dpb.worlds.SphereContexts(1), "dim"),
        (lambda: dpb.worlds.SphereContexts(5, 1), "actions"),
        (lambda: dpb.worlds.SphereContexts(gap=-0.1), "gap"),
        (lambda: dpb.worlds.SphereContexts(gap=1.6), "gap"),
        (lambda: dpb.worlds.SphereContexts(64, gap=1.3), "gap"),
        (lambda: dpb.worlds.SphereContexts(rewards="uniform"), "rewards"),  # type: ignore[arg-type]
        (lambda: dpb.worlds.FixedActions(seed=-1), "seed"),
        (lambda: dpb.worlds.LowRankContexts(4, rank=5), "dim"),
        (lambda: dpb.worlds.SwitchingContexts(switch=0), "switch"),
        (lambda: dpb.worlds.RotatingContexts(2), "dim"),
        (lambda: dpb.worlds.RotatingContexts(tilt=1.5), "tilt"),
        (lambda: dpb.worlds.DisjointContexts(arms=1), "arms"),
    ],
)
def test_bad_arguments_are_refused(make: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make()


@each_world
def test_recipes_survive_a_round_trip(environment: LinearEnvironment) -> None:
    assert dpb.worlds.Environment.from_json(environment.to_json()) == environment
