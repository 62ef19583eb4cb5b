"""Corrupt saves at random and go on, compiled, with those that load: only our own errors may come."""

import contextlib
import warnings
from typing import Any

import numpy as np
from save_files import closed, saved, started

import dpbandits as dpb
from dpbandits.errors import DPBanditsError
from dpbandits.policies import Policy
from dpbandits.policies.saving import restore
from dpbandits.policies.testing import short_form
from dpbandits.testing.driving import drive

CASES = 100  # for each policy
ROUNDS = 50
PLAYED: list[Policy] = [
    dpb.linear.TreeLinUCB(privacy=dpb.GaussianDP(1.0)),
    short_form(dpb.linear.BatchedLinUCB(privacy=dpb.GaussianDP(1.0))),
    short_form(dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))),
    short_form(dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0))),
    dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)),
]
NUMBERS = (0, 1, -1, 2, 5, 63, 2**20, 2**31, 2**53, 2**62, -(2**62))


def corrupt(arrays: dict[str, Any], chance: np.random.Generator) -> dict[str, Any]:
    """A few values of a few arrays."""
    changed = dict(arrays)
    whole = [name for name, array in arrays.items() if array.dtype.kind == "i" and array.size]
    others = [name for name, array in arrays.items() if array.size]
    for _ in range(int(chance.integers(1, 4))):
        name = str(chance.choice(whole if chance.random() < 0.7 else others))
        array = changed[name].copy()
        for _ in range(int(chance.integers(1, 3))):
            place = int(chance.integers(array.size))
            if array.dtype.kind == "f":
                array.flat[place] = chance.choice([0.0, -1.0, 1e-300, 1e300, np.nan, np.inf])
            elif array.dtype.kind == "i":
                near = int(array.flat[place]) + int(chance.integers(-2, 3))
                array.flat[place] = near if chance.random() < 0.6 else int(chance.choice(NUMBERS))
            else:
                array.flat[place] = not array.flat[place]
        changed[name] = array
    return changed


def corrupt_header(header: dict[str, Any], chance: np.random.Generator) -> dict[str, Any]:
    """One of its numbers, sometimes."""
    if chance.random() < 0.8:
        return header
    name = str(chance.choice(["in_flight", "decided", "observed", "closings", "closed_then", "now"]))
    return header | {name: int(chance.choice(NUMBERS))}


def main() -> None:
    warnings.simplefilter("ignore")
    loaded = refused = 0
    for policy in PLAYED:
        type(policy).compiles = True
        header, arrays = saved(policy)
        _, world = started(policy, 1)
        chance = np.random.default_rng(26)
        for case in range(CASES):
            try:
                learner = restore(closed(corrupt_header(header, chance), corrupt(arrays, chance)))
                loaded += 1
            except DPBanditsError:
                refused += 1
                continue
            with contextlib.suppress(DPBanditsError):
                answers = np.random.default_rng(1)
                drive(learner, world, np.random.default_rng(case), ROUNDS, arrivals=answers)
    print(loaded, refused)


if __name__ == "__main__":
    main()
