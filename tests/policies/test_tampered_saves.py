"""A save file is not believed: noise is by the recipe, numbers are in their limits, counts agree."""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from save_files import closed, opened, play, saved, started

import dpbandits as dpb
from dpbandits.engine import beyond_limits
from dpbandits.engine.state import FROM_RECIPE, limits_of
from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.policies import Learner, Policy, policy_kinds
from dpbandits.policies.people import People
from dpbandits.policies.rounds import rounds_counted
from dpbandits.policies.saving import restore
from dpbandits.policies.testing import short_form
from dpbandits.problems import UniformMatroid
from dpbandits.testing import example_environment, example_policies
from dpbandits.worlds import Environment

pytestmark = pytest.mark.slow

POLICIES = [policy for kind in policy_kinds().values() for policy in example_policies(kind)]
# What only other options, problems or a bit of luck set in motion.
OTHERS: list[tuple[Policy, Environment]] = [
    (
        dpb.linear.BatchedLinThompson(privacy=dpb.GaussianDP(1.0)),
        dpb.worlds.FixedActions(dim=2, actions=3, gap=0.3, public=True),
    ),
    (
        dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 0.1), noise="wishart"),
        example_environment(dpb.LinearContexts),
    ),
    (
        dpb.linear.TreeContextualThompson(privacy=dpb.PureDP(1.0), noise="gamma"),
        example_environment(dpb.LinearContexts),
    ),
    (
        dpb.linear.TreeLinUCB(privacy=dpb.ApproxDP(1.0, 0.1), noise="wishart", nodes="all"),
        example_environment(dpb.LinearContexts),
    ),
    (
        dpb.matroids.CombinatorialTreeUCB(privacy=dpb.PureDP(1.0), calibration="paper"),
        example_environment(dpb.MatroidBases),
    ),
    (
        dpb.matroids.PrivateMatroidUCB(privacy=dpb.PureDP(1.0), calibration="paper"),
        example_environment(dpb.MatroidBases),
    ),
    (dpb.matroids.MatroidUCB(first_round="look"), example_environment(dpb.MatroidBases)),
    (
        dpb.arms.SuccessiveElimination(privacy=dpb.PureDP(9.0), epoch_scale=0.08),
        dpb.worlds.BernoulliArms((0.0, 1.0, 0.0)),
    ),
    (
        dpb.kernels.Capri(privacy=dpb.NonPrivate(), first_epoch=20, width=0.05),
        example_environment(dpb.KernelContexts),
    ),
    (
        dpb.local.LocalCapri(privacy=dpb.NonPrivate(), first_epoch=20, width=0.05),
        example_environment(dpb.KernelContexts),
    ),
    (dpb.BetaThompson(), dpb.worlds.BernoulliArms((0.9, 1.0))),
    (dpb.arms.KLUCB(), dpb.worlds.BernoulliArms((0.1, 0.9, 0.8))),
]


def name_of(policy: Any) -> str:
    return f"{policy.name()}-{policy.privacy}" if isinstance(policy, Policy) else ""


def states(state: Any) -> Iterator[Any]:
    """A state and all that are nested in it."""
    yield state
    for value in state:
        if hasattr(value, "_fields"):
            yield from states(value)


def owner(state: Any) -> str:
    """The class that has its fields."""
    kind = next(kind for kind in type(state).__mro__ if "_fields" in vars(kind))
    return f"{kind.__module__}.{kind.__qualname__}"


def arrays_of(learner: Learner) -> dict[tuple[str, str], bytes]:
    """Every array by class and field, those of all states of a class together."""
    found: dict[tuple[str, str], bytes] = {}
    for part in (learner._public, learner._secret):
        for state in states(part):
            for name, value in zip(state._fields, state, strict=True):
                if isinstance(value, np.ndarray) and value.size:
                    key = owner(state), name
                    found[key] = found.get(key, b"") + value.tobytes()
    return found


def test_every_array_changes_in_play_or_is_marked_as_following_from_the_recipe() -> None:
    seen: set[tuple[str, str]] = set()
    moved: set[tuple[str, str]] = set()
    marked: set[tuple[str, str]] = set()
    cases = [(one, None, 50) for policy in POLICIES for one in (short_form(policy), policy)]
    for policy, world, rounds in [*cases, *((*other, 200) for other in OTHERS)]:
        for in_flight in (1, 4):
            learner, world = started(policy, in_flight, world)
            before = arrays_of(learner)
            for state in [*states(learner._public), *states(learner._secret)]:
                marked |= {(owner(state), n) for n, by in limits_of(state).items() if by is FROM_RECIPE}
            for step in range(3):
                play(learner, world, rounds, step)
                if hasattr(learner._public, "away"):
                    learner.retire(step)
                if step == 2:
                    learner.close()
                after = arrays_of(learner)
                seen |= after.keys()
                moved |= {key for key in after if after[key] != before[key]}
                if hasattr(learner._public, "away"):
                    learner.revive(step)
    assert not sorted(moved & marked)  # or a save would be refused
    assert not sorted(seen - moved - marked)  # or a save would be believed


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_whole_numbers_have_limits_and_play_keeps_to_them(policy: Policy) -> None:
    for recipe in (short_form(policy), policy):
        for in_flight in (1, 4):
            learner, world = started(recipe, in_flight)
            for step in range(30):
                for state in (learner._public, learner._secret):
                    assert not list(beyond_limits(state))
                play(learner, world, 4, step)
            for state in [*states(learner._public), *states(learner._secret)]:
                for name, value in zip(state._fields, state, strict=True):
                    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
                        assert name in limits_of(state), f"{owner(state)}.{name}"


# They keep no count of all rounds, and promise the same for any number of them.
UNCOUNTED = {"successive-elimination", "tree-thompson", "uniform-actions", "uniform-bases"}


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_a_state_counts_its_rounds(policy: Policy) -> None:
    learner, world = started(policy, 4)
    if policy.name() in UNCOUNTED:
        assert learner._last is None
        return
    for step in range(5):
        play(learner, world, 17, step)
        assert rounds_counted(learner._public) == learner._rounds.observed


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_a_whole_number_that_cannot_be_is_refused(policy: Policy) -> None:
    header, arrays = saved(short_form(policy))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert restore(closed(header, arrays)).rounds == 57
        for name, array in arrays.items():
            if name.startswith(("flight.", "public.hopeful.matroid.")):
                continue  # tested below; the same memory as that of `played`, which comes after it
            if array.dtype.kind in "iu" and array.size:
                for value in {2**62, -(2**62)} - {array.flat[-1]}:
                    changed = array.copy()
                    changed.flat[-1] = value
                    with pytest.raises(
                        SaveFileError, match=r"follow from the recipe|play can have led to"
                    ):
                        restore(closed(header, arrays | {name: changed}))


NOISE = [
    (dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)), "public.batches.widths", 0.0),
    (dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)), "public.batches.ratio", 0.0),
    (dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)), "public.batches.weights", 0.0),
    (dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)), "public.tree.inner", 0.0),
    (dpb.linear.TreeLinUCB(privacy=dpb.GaussianDP(1.0)), "public.tree.root", 0.0),
    (dpb.linear.TreeLinUCB(privacy=dpb.GaussianDP(1.0)), "public.regularizers", 2.0),
    (dpb.linear.FactorizedLinUCB(privacy=dpb.GaussianDP(1.0)), "public.sums.decay", 0.5),
    (dpb.KernelThompson(privacy=dpb.GaussianDP(1.0)), "public.features.rows", 9.0),
    (dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0)), "public.played.matroid.residues", 2.0),
    # Not of the recipe alone, but of what is counted or known besides.
    (dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)), "public.scale", 0.5),
    (dpb.arms.ThompsonUCB(privacy=dpb.GaussianDP(1.0)), "public.scale", 0.5),
    (dpb.kernels.Capri(privacy=dpb.GaussianDP(1.0)), "public.maps", 2.0),
]


@pytest.mark.parametrize(("policy", "name", "times"), NOISE, ids=lambda value: str(value)[:40])
def test_noise_is_not_what_the_file_says(policy: Policy, name: str, times: float) -> None:
    header, arrays = saved(policy)
    changed = arrays | {name: (arrays[name] * times).astype(arrays[name].dtype)}
    with pytest.raises(SaveFileError, match=f"{name} (does not follow|is nothing that play)"):
        restore(closed(header, changed))


def test_another_version_of_the_same_format_goes_on_if_its_noise_is_still_right() -> None:
    header, arrays = saved(dpb.arms.TreeUCB(privacy=dpb.PureDP(1.0)))
    assert restore(closed(header | {"version": "0.0.0"}, arrays)).decided == 60


ARMS = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"decided": 0}, "counts of rounds"),
        ({"decided": 40, "observed": 37, "closed_then": 37}, "not those of its state"),
        ({"decided": 70, "observed": 67}, "not those of its state"),
        ({"closed_then": 99}, "counts of rounds"),
        ({"in_flight": 2}, "counts of rounds"),
        ({"in_flight": 2.5}, "expected in_flight"),
        ({"now": float("nan")}, "times"),
        ({"now": -1.0}, "times"),
        ({"seeded": "no"}, "how its noise continues"),
        ({"streams": None}, "how its noise continues"),
        ({"streams": [{"bit_generator": "MT19937"}] * 3}, "not a learner"),
        ({"ticket_key": ""}, "key of its tickets"),
        ({"ticket_key": "00" * 200}, "key of its tickets"),
        ({"changes": [[0, "retire", 1]]}, "arms in play"),
        ({"changes": [[0, "retire", 7]]}, "there is no arm 7"),
        ({"changes": [[0, "add", 3]]}, "there is no arm 3"),
        ({"changes": [[99, "retire", 1], [99, "revive", 1]]}, "arms in play"),
        ({"changes": [[0, "sell", 1]]}, "expected act"),
        ({"changes": [4]}, "not a learner"),
        ({"policy": {"kind": "NoiseAwareIMED", "privacy": "x"}}, "not a learner"),
        ({"patience": -1.0}, "expected patience"),
        ({"leader": [0, None, 3]}, "the best action known"),
        ({"leader": [-1, None, 0]}, "expected observed"),
        ({"leader": [0, "x", 0]}, "not a learner"),
        ({"leader": 5}, "not a learner"),
    ],
)
def test_a_header_that_disagrees_with_the_state_is_refused(change: Any, says: str) -> None:
    header, arrays = saved(ARMS)
    with pytest.raises(SaveFileError, match=says):
        restore(closed(header | change, arrays))


def test_a_horizon_cannot_be_bought_again() -> None:
    header, arrays = saved(dpb.arms.GaussianThompson(privacy=dpb.NonPrivate()), in_flight=1)
    for change in ({"decided": 0}, {"decided": 0, "observed": 0, "closed_then": 0}):
        with pytest.raises(SaveFileError, match="counts of rounds"):
            restore(closed(header | change, arrays))
    # Where people are told apart some decisions are not learned from; all are drawn for.
    problem = dpb.Arms(3, horizon=100, rounds_per_person=1)
    learner = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0), prepulls=0).start(problem, seed=1)
    for _ in range(30):
        learner.update(learner.select(person="ada"), 1.0)
    header, arrays = opened(learner.snapshot())
    assert header["observed"] == 1 and restore(closed(header, arrays)).decided == 30
    with pytest.raises(SaveFileError, match="not those of its state"):
        restore(closed(header | {"decided": 1, "closed_then": 1}, arrays))


def with_flight(policy: Policy, name: str, value: Any) -> bytes:
    header, arrays = saved(policy)
    changed = arrays[name].copy()
    changed[0] = value
    return closed(header, arrays | {name: changed})


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        (ARMS, "flight.actions", 3),
        (ARMS, "flight.actions", -1),
        (ARMS, "flight.began", 1e9),
        (ARMS, "public.waiting", 7),
        (dpb.arms.UCB1(), "public.tally.plays", 40),
        (dpb.arms.ThompsonUCB(privacy=dpb.GaussianDP(1.0)), "public.plays", 59),
        (dpb.KernelUCB(), "flight.actions", 3),
        (dpb.KernelUCB(), "flight.contexts", 2),
        (dpb.matroids.MatroidUCB(), "flight.actions", 2),  # all the same item
        (dpb.matroids.MatroidUCB(), "flight.actions", 99),
        (dpb.matroids.MatroidUCB(), "flight.sizes", 1),
        (dpb.matroids.MatroidUCB(), "flight.sizes", 99),
        (dpb.LinUCB(), "flight.actions", -5),
    ],
    ids=lambda value: str(value)[:40],
)
def test_rounds_in_flight_are_of_actions_that_there_are(policy: Policy, name: str, value: Any) -> None:
    with pytest.raises(SaveFileError):
        restore(with_flight(policy, name, value))


def test_arrays_of_another_kind_are_refused() -> None:
    header, arrays = saved(ARMS)
    flags = arrays["public.away"].copy()
    flags.view(np.uint8)[0] = 7
    for change in (
        {"public.away": flags},
        {"public.away": arrays["public.away"].astype(np.int64)},
        {"answered": arrays["answered"].astype(float)},
        {"answered": np.bool_(True)},
        {"public.more": np.zeros(3)},
        {"persons": np.zeros((3, 17), np.uint8)},
        {"public.estimates.mean": np.full(3, np.nan)},
    ):
        with pytest.raises(SaveFileError):
            restore(closed(header, arrays | change))


def test_a_register_of_people_that_cannot_be_is_refused() -> None:
    people = People(2, expected=1000)
    people.take("ada", [(0, 1)])
    good = people.arrays()
    assert not People.from_arrays(2, good).take("ada", [(0, 1)])
    for change in (
        {"expected": np.array(10**12)},
        {"expected": np.array(-1)},
        {"expected": np.array(1e3)},
        {"held": np.array([-1])},
        {"held": np.array([10**15])},
        {"numbers": np.array([0.5])},
        {"cells": good["cells"][:, :5]},
        {"key": good["key"][:5]},
        {"kind": np.frombuffer(b"x", np.uint8)},
        {"kind": np.array([0.5])},
    ):
        with pytest.raises(ValueError, match=r"of|expected"):
            People.from_arrays(2, good | change)


def test_a_broadcast_of_what_cannot_be_is_refused() -> None:
    policy, problem = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)), dpb.Arms(3)
    record = json.loads(policy.start(problem).broadcast())
    record["public"]["plays"] = [-4, 0, 0]
    with pytest.raises(InvalidInput, match="messages cannot have led to"):
        policy.person(problem, json.dumps(record).encode())


def test_matroids_of_every_kind_can_be_saved() -> None:
    pairs = dpb.matroids.GraphicMatroid(((0, 1), (1, 2), (2, 0), (2, 3)))
    matroids = [
        UniformMatroid(5, 2),
        pairs,
        pairs.truncated(2),
        pairs.restricted((3, 1, 0)),
        dpb.matroids.TransversalMatroid(((0,), (0, 1), (1,), (1,))),
    ]
    for matroid in matroids:
        learner = dpb.matroids.MatroidUCB().start(dpb.MatroidBases(matroid), seed=1)
        for _ in range(20):
            basis = learner.select()
            learner.update(basis, np.linspace(0.0, 1.0, basis.size))
        header, arrays = opened(learner.snapshot())
        assert restore(closed(header, arrays)).rounds == 20
        for name, array in arrays.items():
            if ".matroid." in name and array.dtype.kind in "iu":
                with pytest.raises(SaveFileError):
                    restore(closed(header, arrays | {name: np.full_like(array, -7)}))


FUZZ = Path(__file__).parents[1] / "support" / "fuzzed_saves.py"


def test_corrupted_saves_end_no_process() -> None:
    """In a process of its own: compiled code does not look where it writes."""
    done = subprocess.run([sys.executable, str(FUZZ)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    loaded, refused = map(int, done.stdout.split())
    assert loaded > 30 and refused > 200
