"""The speed table: each figure as a ratio to a reference measured in the same run."""

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from hand_written import batched_imed, kernel_thompson, lazy_ucb, modified_thompson, tree_ucb
from rich.console import Console

import dpbandits as dpb
from dpbandits.engine.streams import Streams, run_seed
from dpbandits.reports.tables import terminal_table
from dpbandits.simulation.run import play

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ROUNDS, REPEATS = 1_000_000, 9


def best_of(*actions: Callable[[], object]) -> list[float]:
    """The least time of each, measured in turns so that a noisy machine is noisy for all."""
    times = [[] for _ in actions]
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
    thompson = dpb.ModifiedThompson(privacy=dpb.GaussianDP(1.0))
    tree = dpb.TreeUCB(privacy=dpb.PureDP(4.887))
    scales = thompson.scales(dpb.Arms(5, horizon=ROUNDS))
    cases: list[tuple[dpb.Policy, Callable[..., float], tuple[float, ...], str]] = [
        (thompson, modified_thompson, scales, "≤ 1.5"),
        (dpb.LazyUCB(privacy=one), lazy_ucb, (1.0,), "≤ 2"),
        (tree, tree_ucb, (4.887, tree.bonus(dpb.Arms(5, horizon=ROUNDS))), "≤ 2"),
        (dpb.PrivateIMED(privacy=one), batched_imed, (1.0,), "≤ 2"),
        (dpb.NoiseAwareIMED(privacy=one), batched_imed, (1.0,), "≤ 2"),
    ]
    return [_against_hand_written(*case) for case in cases]


def _against_hand_written(
    policy: dpb.Policy, reference: Callable[..., float], options: tuple[float, ...], goal: str
) -> dict[str, object]:
    environment, means = dpb.BernoulliArms(MEANS), np.array(MEANS)
    grid, seed = np.array([ROUNDS]), run_seed(0, 0)

    def by_hand() -> float:
        streams = Streams.of(seed)
        return float(reference(means, *options, ROUNDS, streams.noise, streams.chance))

    def generic() -> float:
        played = play(policy, environment, grid, seed)
        assert played is not None
        return float(played.curves[-1, 0])

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


def kernels() -> list[dict[str, object]]:
    """Kernel Thompson sampling with its pauses, against the same written for this case alone."""
    rows, policy = [], dpb.KernelThompson(privacy=dpb.ApproxDP(1.0, 1e-5))
    for name in ("squared-exponential", "matern"):
        world, seed, grid = dpb.KernelWorld.standard(name), run_seed(0, 0), np.array([ROUNDS])
        features, means = world.problem(None).features(), world.means()
        scale, first = policy._scale(world.problem(None), features), policy.schedule()

        def by_hand(
            means: object = means, rows: object = features.rows, scale: float = scale, first: int = first
        ) -> float:
            return kernel_thompson(means, rows, scale, first, ROUNDS, *Streams.of(run_seed(0, 0)))

        def generic(world: dpb.KernelWorld = world, seed: object = seed, grid: object = grid) -> float:
            played = play(policy, world, grid, seed)
            assert played is not None
            return float(played.curves[-1, 0])

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


def learner() -> list[dict[str, object]]:
    """One decision and one update, in plain Python and compiled."""
    rows, rounds = [], 20_000
    floor = np.random.default_rng(0)

    def five_draws() -> None:
        for _ in range(5 * rounds):
            floor.normal(0.5, 1.0)

    for compiled in (False, True):
        policy = dpb.GaussianThompson()
        it = policy.start(dpb.Arms(5), seed=1, compiled=compiled)

        def decide(it: dpb.Learner = it) -> None:
            for _ in range(rounds):
                it.update(it.select(), 1.0)

        mine, reference = best_of(decide, five_draws)
        rows.append(
            {
                "what": f"learner, select + update, {'compiled' if compiled else 'plain Python'}",
                "measured": f"{1e6 * mine / rounds:.1f} µs",
                "reference": f"five NumPy normals {1e6 * reference / rounds:.1f} µs",
                "ratio": mine / reference,
                "goal": "< 10 µs" if not compiled else "",
            }
        )
    return rows


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
    rows = [*generic_loop(), *kernels(), *learner(), *start_up()]
    Console(width=130).print(terminal_table(rows, "Speed (best of 9, in turns)"))
