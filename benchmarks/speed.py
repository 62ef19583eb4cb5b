"""The speed table: each figure as a ratio to a reference measured in the same run."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from hand_written import (
    batched_imed,
    kernel_thompson,
    lazy_ucb,
    modified_thompson,
    tree_lin_ucb,
    tree_ucb,
)
from hand_written_matroids import focused_matroid_ucb, matroid_ucb
from rich.console import Console
from threadpoolctl import threadpool_limits

import dpbandits as dpb
from dpbandits.engine import leaves
from dpbandits.engine.loop import Ledger, compiled_for
from dpbandits.engine.streams import Streams, run_seed
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.features import Category, Number
from dpbandits.reports.tables import terminal_table
from dpbandits.simulation.replicate import thin_grid
from dpbandits.simulation.run import play

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ROUNDS, REPEATS = 1_000_000, 9


def best_of(*actions: Callable[[], object]) -> list[float]:
    """The least time of each, measured in turns so that a noisy machine is noisy for all."""
    times: list[list[float]] = [[] for _ in actions]
    for action in actions:
        action()
    for _ in range(REPEATS):
        for action, kept in zip(actions, times, strict=True):
            began = time.perf_counter()
            action()
            kept.append(time.perf_counter() - began)
    return [min(kept) for kept in times]


def generic_loop() -> list[dict[str, object]]:
    """The generic loop, with world and bookkeeping, against loops written for one case alone."""
    one = dpb.PureDP(1.0)
    thompson = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0))
    tree = dpb.arms.TreeUCB(privacy=dpb.PureDP(4.887))
    scales = thompson.scales(dpb.Arms(5, horizon=ROUNDS))
    cases: list[tuple[dpb.Policy, Callable[..., float], tuple[float, ...], str]] = [
        (thompson, modified_thompson, scales, "≤ 1.5"),
        (dpb.arms.LazyUCB(privacy=one), lazy_ucb, (1.0,), "≤ 2"),
        (tree, tree_ucb, (4.887, tree.bonus(dpb.Arms(5, horizon=ROUNDS))), "≤ 2"),
        (dpb.arms.PrivateIMED(privacy=one), batched_imed, (1.0,), "≤ 2"),
        (dpb.NoiseAwareIMED(privacy=one), batched_imed, (1.0,), "≤ 2"),
    ]
    return [_against_hand_written(*case) for case in cases]


def _regret(policy: dpb.Policy, world: dpb.worlds.Environment) -> float:
    """After all rounds of the first run."""
    played = play(policy, world, np.array([ROUNDS]), run_seed(0, 0))
    assert played is not None
    return float(played.curves[-1, 0])


def _against_hand_written(
    policy: dpb.Policy, reference: Callable[..., float], options: tuple[float, ...], goal: str
) -> dict[str, object]:
    environment, means = dpb.worlds.BernoulliArms(MEANS), np.array(MEANS)
    seed = run_seed(0, 0)

    def by_hand() -> float:
        streams = Streams.of(seed)
        return float(reference(means, *options, ROUNDS, streams.noise, streams.chance))

    def generic() -> float:
        return _regret(policy, environment)

    # Both must be solving the problem: far from the regret of uniform play, a quarter of the rounds.
    assert max(generic(), by_hand()) < 0.05 * ROUNDS
    mine, theirs = best_of(generic, by_hand)
    return {
        "what": f"{policy.name()}, 5 arms, simulated",
        "measured": f"{1e9 * mine / ROUNDS:.1f} ns a round",
        "reference": f"{reference.__name__} by hand {1e9 * theirs / ROUNDS:.1f} ns",
        "ratio": mine / theirs,
        "goal": goal,
    }


def many_runs() -> list[dict[str, object]]:
    """`simulate` of many runs, in one thread to as many as there are cores, against compiled rounds."""
    policy, world = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.worlds.BernoulliArms(MEANS)
    rounds, runs, cores = 100_000, 1000, os.cpu_count() or 1
    rows: list[dict[str, object]] = []
    for threads in sorted({*(2**k for k in range(cores.bit_length())), cores}):

        def simulated(rounds: int = rounds, runs: int = runs, threads: int = threads) -> dpb.Trace:
            return dpb.simulate(policy, world, rounds, runs, 0, threads=threads, progress=False)

        simulated()
        mine, alone = [], []
        for _ in range(REPEATS):
            alone.append(_compiled_rounds(policy, world, rounds) * runs / threads)
            began = time.perf_counter()
            simulated()
            mine.append(time.perf_counter() - began)
        rows.append(
            {
                "what": f"{policy.name()}, {runs} runs of 10⁵ rounds, {threads} of {cores} cores",
                "measured": f"{min(mine):.2f} s, {1e-9 * rounds * runs / min(mine):.2f} · 10⁹ rounds/s",
                "reference": f"compiled rounds alone, divided by {threads}: {min(alone):.2f} s",
                "ratio": min(mine) / min(alone),
                "goal": "≤ 1.2",
            }
        )
    many = 20_000
    short = partial(simulated, rounds=10, runs=many, threads=1)
    own, seeded = best_of(short, lambda: [Streams.of(run_seed(0, run)) for run in range(many)])
    row = _per_round(f"{policy.name()}, a run of 10 rounds among many", own / many, "", seeded / many)
    return [*rows, row | {"reference": f"NumPy's three generators for it {1e6 * seeded / many:.1f} µs"}]


def sweeping() -> list[dict[str, object]]:
    """The same runs in units that are kept on disk, named and read again, against one `simulate`."""
    policy, world = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.worlds.BernoulliArms(MEANS)
    rounds, runs = 100_000, 1000

    def swept() -> object:
        with TemporaryDirectory() as folder:
            cells: Any = {"policies": policy, "environments": world, "rounds": rounds, "runs": runs}
            return dpb.sweep(**cells, seed=0, results=folder, progress=False)

    mine, reference = best_of(
        swept, lambda: dpb.simulate(policy, world, rounds, runs, 0, progress=False)
    )
    return [
        {
            "what": f"a sweep of {policy.name()}, {runs} runs of 10⁵ rounds in 5 units",
            "measured": f"{mine:.2f} s",
            "reference": f"one simulate {reference:.2f} s",
            "ratio": mine / reference,
            "goal": "",
        }
    ]


def _compiled_rounds(policy: dpb.Policy, world: dpb.worlds.Environment, rounds: int) -> float:
    """Seconds of a run, without all that is done before and after it; the mean of several."""
    spent, runs = 0.0, 40
    for run in range(runs):
        public, secret = policy.begin(world.problem(rounds))
        given = public, secret, world.world(), Streams.of(run_seed(0, run)), Ledger.on(thin_grid(rounds))
        code = compiled_for(public, given[2])
        code.run(*given, 0)
        began = time.perf_counter()
        code.run(*given, rounds)
        spent += time.perf_counter() - began
    return spent / runs


def leaps() -> list[dict[str, object]]:
    """Batches by one draw, against the same policy round by round: a run of 10⁵ rounds among many."""
    policy, world = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.worlds.BernoulliArms(MEANS)
    rounds, few, many = 100_000, 50, 2000
    options: dict[str, Any] = {"seed": 0, "points": 1, "threads": 1, "progress": False}
    mine, reference = best_of(
        partial(dpb.simulate, policy, world, rounds, many, leaps=True, **options),
        partial(dpb.simulate, policy, world, rounds, few, **options),
    )
    what = f"{policy.name()}, a run of 10⁵ rounds in leaps"
    return [_per_round(what, mine / many, "round by round", reference / few) | {"goal": "≤ 0.2"}]


def matroid_loop() -> list[dict[str, object]]:
    """Table 2 of Chandak, Hu & Hegde, and a hundred vectors like films with their genres."""
    rng, two = np.random.default_rng(3), dpb.PureDP(2.0)
    genres = (rng.random((100, 17)) < 0.15).astype(int)
    genres[:17] = np.eye(17, dtype=int)
    films = dpb.matroids.LinearMatroid(tuple(map(tuple, genres[genres.any(axis=1)])))
    worlds = {
        "L = 7, K = 3": TABLE_2,
        "L = 100, K = 17": dpb.worlds.MatroidArms(films, tuple(rng.uniform(0.1, 0.6, films.size))),
    }
    goals = {"L = 7, K = 3": "< 60 ns, ≤ 1.7", "L = 100, K = 17": "< 400 ns, ≤ 1.7"}
    rows = []
    for name, world in worlds.items():
        problem = world.problem(ROUNDS)
        focused, ucb = dpb.FocusedMatroidUCB(privacy=two), dpb.matroids.PrivateMatroidUCB(privacy=two)
        options = (*focused.schedule(problem), two.epsilon)
        for policy, reference, given in (
            (focused, focused_matroid_ucb, options),
            (ucb, matroid_ucb, (two.epsilon,)),
        ):
            rows.append(_matroid_row(policy, world, reference, given, name, goals[name]))
    return rows


def _matroid_row(
    policy: dpb.Policy,
    world: dpb.worlds.MatroidArms,
    reference: Callable[..., float],
    options: tuple[float, ...],
    name: str,
    goal: str,
) -> dict[str, object]:
    keep = [item for item in range(world.matroid.size) if item not in world.matroid.loops]
    assert isinstance(world.matroid, dpb.matroids.LinearMatroid)
    vectors = np.array(world.matroid.vectors, np.float64)[keep]
    means, rank = np.array(world.means)[keep], world.matroid.rank
    seed = run_seed(0, 0)

    def by_hand() -> float:
        streams = Streams.of(seed)
        drawn = (ROUNDS, streams.noise, streams.chance)
        return float(reference(vectors, rank, means, *options, *drawn))

    def generic() -> float:
        return world.best_return() * ROUNDS - _regret(policy, world)

    # Both must be solving the problem, and alike.
    earned = np.array([generic(), by_hand()]) / (ROUNDS * world.best_return())
    assert earned.min() > 0.9, earned
    assert abs(earned[0] - earned[1]) < 0.02, earned
    mine, theirs = best_of(generic, by_hand)
    return {
        "what": f"{policy.name()}, {name}, simulated",
        "measured": f"{1e9 * mine / ROUNDS:.1f} ns a round",
        "reference": f"{reference.__name__} by hand {1e9 * theirs / ROUNDS:.1f} ns",
        "ratio": mine / theirs,
        "goal": goal,
    }


def linear_loop() -> list[dict[str, object]]:
    """Shariff & Sheffet's experiment: d = 5, K = 25, a fresh decision set each round."""
    policy = dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 0.1), calibration="paper")
    environment, seed = dpb.worlds.SphereContexts(), run_seed(0, 0)
    public, _ = policy.begin(environment.problem(ROUNDS))
    levels, scale = public.tree.prefix.shape[1], float(public.tree.inner[0])
    options = (levels, scale, *(float(x) for x in public.regularizers[0]), public.settings.level)
    reference: Callable[..., float] = tree_lin_ucb

    def by_hand() -> float:
        streams = Streams.of(seed)
        return float(reference(5, 25, 0.1, *options, ROUNDS, streams.noise, streams.chance))

    def generic() -> float:
        return _regret(policy, environment)

    assert max(generic(), by_hand()) < 0.05 * ROUNDS
    mine, theirs = best_of(generic, by_hand)
    return [
        {
            "what": "tree-lin-ucb, 25 actions of 5 features, simulated",
            "measured": f"{1e9 * mine / ROUNDS:.0f} ns a round",
            "reference": f"one fused loop by hand {1e9 * theirs / ROUNDS:.0f} ns",
            "ratio": mine / theirs,
            "goal": "≤ 1.3, ≤ 1200 ns",
        }
    ]


def linear_learner() -> list[dict[str, object]]:
    """One decision and one update, compiled, against NumPy's product of the same sizes."""
    randomized = dpb.RandomizedLinUCB(privacy=dpb.ApproxDP(1.0, 1e-6))
    return [
        _linear_row(randomized, 5, 25, 5_000, "< 40 µs"),
        _linear_row(randomized, 100, 1000, 20, "≤ 2"),
        _linear_row(dpb.linear.LinUCB(), 100, 1000, 20, "≤ 2"),
        _end_of_batch(randomized, 100),
    ]


def _end_of_batch(policy: dpb.TrustedPolicy, dim: int) -> dict[str, object]:
    """The decisions that release a batch, against LAPACK's eigenvectors."""
    features, it = np.eye(1, dim), policy.start(dpb.LinearContexts(dim), seed=1)
    ends: list[float] = []
    while len(ends) < REPEATS + 1:
        before, began = it._public.batches.released[0], time.perf_counter()
        action = it.select(features)
        if it._public.batches.released[0] > before:
            ends.append(time.perf_counter() - began)
        it.update(action, 1.0)
    matrix = np.random.default_rng(0).normal(size=(dim, dim))
    with threadpool_limits(1):
        (reference,) = best_of(lambda: np.linalg.eigh(matrix + matrix.T))
    return {
        "what": f"{policy.name()}, the end of a batch, {dim} features",
        "measured": f"{1e3 * min(ends):.1f} ms",
        "reference": f"eigenvectors by LAPACK {1e3 * reference:.1f} ms",
        "ratio": min(ends) / reference,
        "goal": "",
    }


def _linear_row(
    policy: dpb.TrustedPolicy, dim: int, actions: int, rounds: int, goal: str
) -> dict[str, object]:
    """Later than the first batch, between the ends of batches; NumPy on one thread, as we are."""
    features = np.random.default_rng(0).normal(size=(actions, dim))
    features /= 1.001 * np.linalg.norm(features, axis=1, keepdims=True)  # within the bound
    matrix, it = np.eye(dim), policy.start(dpb.LinearContexts(dim), seed=1)

    def decide() -> None:
        for _ in range(rounds):
            it.update(it.select(features), 1.0)

    def product() -> None:
        for _ in range(rounds):
            np.einsum("ki,ki->k", features @ matrix, features)

    for _ in range(200):  # the first batch is uniform play, which is no work
        it.update(it.select(features[:1]), 1.0)
    with threadpool_limits(1):
        mine, reference = best_of(decide, product)
    return {
        "what": f"{policy.name()}, select + update, {actions} actions of {dim} features",
        "measured": f"{1e6 * mine / rounds:.1f} µs",
        "reference": f"xᵀAx of all actions by NumPy {1e6 * reference / rounds:.1f} µs",
        "ratio": mine / reference,
        "goal": goal,
    }


def disjoint_learner() -> list[dict[str, object]]:
    """Arms with parameters of their own, against NumPy with a matrix for each arm; and their states."""
    budget = dpb.ApproxDP(1.0, 1e-6)
    private = (dpb.RandomizedLinUCB(privacy=budget), dpb.linear.BatchedLinThompson(privacy=budget))
    policies: tuple[dpb.TrustedPolicy, ...] = (dpb.linear.LinUCB(), dpb.linear.LinThompson(), *private)
    sizes = (64, 10), (100, 1000)
    return [
        *(_disjoint_row(policy, 20, 100) for policy in policies),
        *(_state_row(policy, dim, arms) for dim, arms in sizes for policy in private),
    ]


def _disjoint_row(
    policy: dpb.TrustedPolicy, dim: int, arms: int, rounds: int = 500
) -> dict[str, object]:
    """Select and update after 3,000 rounds, ends of batches included."""
    contexts = np.random.default_rng(0).normal(size=(rounds, dim))
    contexts /= 1.001 * np.linalg.norm(contexts, axis=1, keepdims=True)
    moment, mean, inverse = *np.zeros((2, arms, dim)), np.tile(np.eye(dim), (arms, 1, 1))
    it = policy.start(dpb.LinearContexts(dim, arms=arms), seed=1)

    def decide() -> None:
        for context in contexts:
            it.update(it.select(context), 1.0)

    def by_numpy() -> None:
        for context in contexts:
            arm = int(np.argmax(mean @ context + np.sqrt((inverse @ context) @ context)))
            image = inverse[arm] @ context
            inverse[arm] -= np.outer(image, image) / (1.0 + image @ context)
            moment[arm] += context
            mean[arm] = inverse[arm] @ moment[arm]

    for _ in range(3000 // rounds):
        decide()
    with threadpool_limits(1):
        mine, reference = best_of(decide, by_numpy)
    return {
        "what": f"{policy.name()}, select + update, {arms} arms with {dim} parameters of their own",
        "measured": f"{1e6 * mine / rounds:.1f} µs",
        "reference": f"a matrix for each arm by NumPy {1e6 * reference / rounds:.1f} µs",
        "ratio": mine / reference,
        "goal": "≤ 3",
    }


def _state_row(policy: dpb.TrustedPolicy, dim: int, arms: int) -> dict[str, object]:
    """What a learner holds, and how long the end of its first batch takes."""
    problem = dpb.LinearContexts(dim, arms=arms)
    it, context = policy.start(problem, seed=1), np.eye(1, dim)[0]
    while it._public.batches.released[0] == 0:
        began = time.perf_counter()
        it.update(it.select(context), 1.0)
    took = time.perf_counter() - began
    held = sum(
        np.asarray(value).nbytes for part in (it._public, it._secret) for _, value in leaves(part)
    )
    whole = 8.0 * (dim * arms) * (dim * arms + 3) / 2
    return {
        "what": f"{policy.name()}, {arms} arms with {dim} parameters of their own",
        "measured": f"a state of {held / 2**20:,.0f} MiB, a release in {took:.2f} s",
        "reference": f"one Gram matrix of all arms {whole / 2**20:,.0f} MiB",
        "ratio": held / whole,
        "goal": "≤ 1 GiB",
    }


def kernels() -> list[dict[str, object]]:
    """Kernel Thompson sampling with its pauses, against the same written for this case alone."""
    rows, policy = [], dpb.KernelThompson(privacy=dpb.ApproxDP(1.0, 1e-5))
    for name in ("squared-exponential", "matern"):
        world = dpb.worlds.KernelWorld.standard(name)
        features, means = world.problem(None).features(), world.means()
        scale, first = policy._scale(world.problem(None), features), policy.schedule()

        def by_hand(
            means: object = means, rows: object = features.rows, scale: float = scale, first: int = first
        ) -> float:
            return kernel_thompson(means, rows, scale, first, ROUNDS, *Streams.of(run_seed(0, 0)))

        def generic(world: dpb.worlds.KernelWorld = world) -> float:
            return _regret(policy, world)

        # Both must be solving the problem: a small part of the regret of uniform play.
        assert max(generic(), by_hand()) < 0.1 * ROUNDS * world.uniform_regret()
        mine, theirs = best_of(generic, by_hand)
        rows.append(
            {
                "what": f"{policy.name()}, {name}, 20 × 20, simulated",
                "measured": f"{mine:.2f} s for 10⁶ rounds",
                "reference": f"by hand {theirs:.2f} s",
                "ratio": mine / theirs,
                "goal": "≤ 1.5, < 1 s",
            }
        )
    return rows


def _per_round(what: str, mine: float, other: str, reference: float) -> dict[str, object]:
    """Seconds a round, against those of another."""
    return {
        "what": what,
        "measured": f"{1e6 * mine:.1f} µs",
        "reference": f"{other} {1e6 * reference:.1f} µs",
        "ratio": mine / reference,
        "goal": "",
    }


def learner() -> list[dict[str, object]]:
    """One decision and one update, in plain Python and compiled."""
    rows, rounds = [], 20_000
    floor = np.random.default_rng(0)

    def five_draws() -> None:
        for _ in range(5 * rounds):
            floor.normal(0.5, 1.0)

    for compiled in (False, True):
        policy = dpb.arms.GaussianThompson()
        it = policy.start(dpb.Arms(5), seed=1, compiled=compiled)

        def decide(it: dpb.Learner = it) -> None:
            for _ in range(rounds):
                it.update(it.select(), 1.0)

        mine, reference = best_of(decide, five_draws)
        what = f"learner, select + update, {'compiled' if compiled else 'plain Python'}"
        row = _per_round(what, mine / rounds, "five NumPy normals", reference / rounds)
        rows.append(row | {"goal": "< 10 µs" if not compiled else ""})
    return rows


def exact_noise() -> list[dict[str, object]]:
    """A learner at work, on exact noise from ChaCha20, against the same on floating-point noise."""
    rows = []
    features = np.random.default_rng(0).normal(size=(25, 5)) / 5.0
    cases: list[tuple[dpb.TrustedPolicy, dpb.Problem, tuple[Any, ...], int]] = [
        (dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), dpb.Arms(5), (), 20_000),
        (
            dpb.RandomizedLinUCB(privacy=dpb.ApproxDP(1.0, 1e-6)),
            dpb.LinearContexts(5),
            (features,),
            5_000,
        ),
        (dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)), dpb.Arms(5, horizon=10**6), (), 1_000),
    ]
    for policy, problem, offered, rounds in cases:
        exact = policy.start(problem)
        floats = policy.start(problem, seed=1)
        assert (exact.noise, floats.noise) == ("exact", "float")

        def serve(it: dpb.Learner, offered: tuple[Any, ...] = offered, rounds: int = rounds) -> None:
            for _ in range(rounds):
                it.update(it.select(*offered), 1.0)

        mine, reference = best_of(partial(serve, exact), partial(serve, floats))
        what = f"{policy.name()}, select + update, exact noise"
        rows.append(_per_round(what, mine / rounds, "floating-point noise", reference / rounds))
    return rows


def logs() -> list[dict[str, object]]:
    """A map of features against scikit-learn's own transformers; a replay against the learner alone."""
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    size, chance = 100_000, np.random.default_rng(0)
    countries = ["de", "fr", "it", "es"]
    table = pl.DataFrame(
        {"age": chance.uniform(18, 90, size), "country": chance.choice(countries, size)}
    )
    features = dpb.FeatureMap([Number("age", 18, 90), Category("country", countries)])
    parts = [("n", MinMaxScaler(), ["age"]), ("c", OneHotEncoder(), ["country"])]
    transformer = ColumnTransformer(parts, sparse_threshold=0.0).fit(table)
    mine, reference = best_of(lambda: features.rows(table), lambda: transformer.transform(table))
    found = [_per_round("features, a row", mine / size, "scikit-learn's", reference / size)]

    items = chance.integers(5, size=size)
    clicks = (chance.random(size) < np.array(MEANS)[items]).astype(np.float64)
    rows = dpb.offline.Rows(actions=items, rewards=clicks, labels=tuple("abcde"))
    policy = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0))
    rounds = dpb.offline.replay(policy, rows, seed=0).rounds

    def alone() -> None:
        it = policy.start(dpb.Arms(5), seed=0)
        for _ in range(rounds):
            it.update(it.select(), 1.0)

    mine, reference = best_of(lambda: dpb.offline.replay(policy, rows, seed=0), alone)
    what = "replay of a log, a round of five rows"
    return [*found, _per_round(what, mine / rounds, "select + update", reference / rounds)]


def start_up() -> list[dict[str, object]]:
    """The command line, once compiled."""

    def run(*arguments: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    mine, reference = best_of(run("-m", "dpbandits", "list"), run("-c", "import numba, scipy.optimize"))
    return [
        {
            "what": "dpbandits list",
            "measured": f"{mine:.2f} s",
            "reference": f"importing numba and scipy.optimize {reference:.2f} s",
            "ratio": mine / reference,
            "goal": "< 1 s",
        }
    ]


if __name__ == "__main__":
    rows = [
        *generic_loop(),
        *many_runs(),
        *leaps(),
        *sweeping(),
        *matroid_loop(),
        *linear_loop(),
        *kernels(),
        *learner(),
        *linear_learner(),
        *disjoint_learner(),
        *exact_noise(),
        *logs(),
        *start_up(),
    ]
    Console(width=130).print("Speed (best of 9, in turns)", terminal_table(rows))
