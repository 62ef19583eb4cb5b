"""Rounds a second on a GPU for four families of policies, and a million runs of one of them.

`python benchmarks/gpu.py`; with `--sweep` also for other numbers of runs at once, threads a block,
registers a thread and patience of a run. With `--tails` instead the rare bad runs of the recommended
policies for arms and matroids, as docs/reproduction.md shows them; these with `--device cpu` on a CPU,
and those for arms with `--device cpu --leaps` much quicker.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import dpbandits as dpb
from dpbandits.engine.gpu import Wave, device_name
from dpbandits.engine.loop import Ledger
from dpbandits.engine.philox import philox_key
from dpbandits.experiments import tails
from dpbandits.experiments.chandak.setting import TABLE_2
from dpbandits.worlds import BernoulliArms, Environment, SphereContexts

_ARMS = BernoulliArms((0.75, 0.625, 0.5, 0.375, 0.25))
_HORIZON = 100_000
_MILLION = 1 << 20
_SECONDS = 1.5  # at most, but for the million runs


class Case(NamedTuple):
    policy: dpb.Policy
    environment: Environment
    goal: float  # rounds a second, in 10⁹
    runs: int = _MILLION


CASES = (
    Case(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), _ARMS, 63.0),
    Case(dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)), _ARMS, 8.4),
    Case(dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0)), TABLE_2, 4.1),
    Case(dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0)), SphereContexts(5, 25), 0.1, 1 << 17),
)


def wave_of(case: Case, runs: int, *, small: bool = True, **options: int) -> Wave:
    """All runs at the start, compiled. Options are those of a `Wave`."""
    world = case.environment.small_world() if small else case.environment.world()
    states = *case.policy.begin(case.environment.problem(_HORIZON)), world
    wave = Wave(*states, Ledger.on(np.array([_HORIZON])), philox_key(0), np.arange(runs), **options)
    wave.prepare()
    return wave


def measured(case: Case, runs: int, *, small: bool = True, **options: int) -> str:
    """Chunks of about a quarter of a second until the horizon, or for a few seconds."""
    began = time.perf_counter()
    wave = wave_of(case, runs, small=small, **options)
    compiling = time.perf_counter() - began
    done, size, spent = 0, 100, 0.0
    while done < _HORIZON and spent < _SECONDS:
        stop, began = min(_HORIZON, done + size), time.perf_counter()
        if wave.play(stop) != stop:
            raise RuntimeError(f"{case.policy.name()} broke off before round {stop}")
        seconds = time.perf_counter() - began
        done, spent, size = stop, spent + seconds, int(size * min(8.0, 0.25 / seconds)) + 1
    rate = runs * done / spent / 1e9
    chosen = "".join(f", {name} {value}" for name, value in options.items())
    return (
        f"{case.policy.name():20} {runs:>9,} runs × {done:>7,} rounds{chosen}"
        f"{'' if small else ', usual world'}: {rate:8.3f} · 10⁹ rounds/s (goal {case.goal:g}), "
        f"{spent:.2f} s, compiled in {compiling:.1f} s"
    )


def million_runs() -> str:
    """All rounds of a million runs of the first, and their mean regret."""
    wave = wave_of(CASES[0], _MILLION)
    began = time.perf_counter()
    for stop in range(_HORIZON // 10, _HORIZON + 1, _HORIZON // 10):
        assert wave.play(stop) == stop
    spent = time.perf_counter() - began
    regret = wave.curves()[:, -1, 0]
    worst = ", ".join(f"{q:g} %: {np.percentile(regret, q):.1f}" for q in (50, 99, 99.9, 99.99))
    return (
        f"{_MILLION:,} runs of {_HORIZON:,} rounds of {CASES[0].policy.name()}: {spent:.2f} s, "
        f"{_MILLION * _HORIZON / spent / 1e9:.1f} · 10⁹ rounds/s; regret {regret.mean():.3f} "
        f"± {regret.std() / np.sqrt(regret.size):.3f}; {worst}; worst {regret.max():.1f}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sweep", action="store_true")
    options.add_argument("--tails", action="store_true")
    options.add_argument(
        "--only", choices=[one.name for one in tails.ALL], help="One family of --tails."
    )
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="For --tails.")
    options.add_argument("--leaps", action="store_true", help="For --tails of arms on a CPU.")
    options.add_argument("--runs", type=int, help="The most runs of a row of --tails.")
    options.add_argument("--out", type=Path, default=Path(), help="The folder for --tails.")
    chosen = options.parse_args()
    if chosen.device == "cuda":
        print(device_name(), flush=True)
    if chosen.tails:
        began = time.perf_counter()
        for family in tails.ALL:
            if chosen.only not in (None, family.name) or (chosen.leaps and not family.leaps()):
                continue
            tails.measure_tails(chosen.out, family, chosen.device, chosen.runs, leaps=chosen.leaps)
            print(f"{tails.tails_section(chosen.out, family)}\n{time.perf_counter() - began:.0f} s")
        return
    for case in CASES:
        print(measured(case, case.runs), flush=True)
    print(million_runs(), flush=True)
    if not chosen.sweep:
        return
    for case in CASES[:-1]:
        for registers in (255, 168, 128, 96, 80, 64):
            for patience in (3, 4, 5, 6, 7, 20) if registers == 128 else (5,):
                print(measured(case, case.runs, registers=registers, patience=patience), flush=True)
        print(measured(case, case.runs, block=64), flush=True)
    for runs in (1 << 14, 1 << 15, 1 << 16, 1 << 18):
        print(measured(CASES[-1], runs), flush=True)
    print(measured(CASES[-1], 1 << 15, small=False), flush=True)


if __name__ == "__main__":
    main()
