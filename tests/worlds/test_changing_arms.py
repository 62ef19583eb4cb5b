"""Arms that change: regret is what it is said to be, and bad input is refused in a sentence."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli.main import app
from dpbandits.cli.worlds import environment
from dpbandits.errors import InvalidInput
from dpbandits.worlds import ScriptedArms, ShiftingArms

MEANS = ((0.9, 0.5, 0.1), (0.1, 0.5, 0.6), (0.3, 0.2, 1.0))
CHANGES = (3, 7)


def settled(world: dpb.worlds.Environment, actions: list[int]) -> np.ndarray:
    """(best, mean, reward) of every round, for these actions."""
    state, chance = world.world(), np.random.default_rng(1)
    found = []
    for action in actions:
        state.offer(chance)
        reward = state.pay(None, action, chance)
        found.append(state.settle(None, action, reward))
    return np.array(found)


def means_by_round(rounds: int) -> np.ndarray:
    return np.array([MEANS[np.searchsorted(CHANGES, t, side="right")] for t in range(rounds)])


def test_regret_is_against_the_arm_that_was_best_so_far() -> None:
    actions = [0, 0, 0, 2, 1, 0, 1, 2, 2, 1, 2, 0]
    found, means = settled(ShiftingArms(MEANS, CHANGES), actions), means_by_round(12)
    np.testing.assert_allclose(found[:, 1], means[np.arange(12), actions])
    np.testing.assert_allclose(np.cumsum(found[:, 0]), np.cumsum(means, axis=0).max(axis=1))
    assert found[7, 0] < means[7].max()  # an arm may pay more than the best fixed one gains


def test_regret_may_be_against_the_best_arm_of_every_round() -> None:
    found = settled(ShiftingArms(MEANS, CHANGES, against="moving"), [0] * 12)
    np.testing.assert_allclose(found[:, 0], means_by_round(12).max(axis=1))


@pytest.mark.parametrize("against", ["fixed", "moving"])
@pytest.mark.parametrize("rounds", [1, 3, 5, 7, 12])
def test_random_play_loses_what_is_said(against: str, rounds: int) -> None:
    world, means = ShiftingArms(MEANS, CHANGES, against), means_by_round(rounds)  # type: ignore[arg-type]
    best = settled(world, [0] * rounds)[:, 0].sum()
    assert world.uniform_total(rounds) == pytest.approx(best - means.mean(axis=1).sum())
    assert world.uniform_regret() == pytest.approx(1.0 - 0.5)


def test_a_script_pays_as_written() -> None:
    table = np.array([(1.0, 0.0, 0.25), (0.0, 0.5, 0.5), (0.0, 1.0, 0.75)])
    found = settled(ScriptedArms(table), [0, 2, 1])
    assert found[:, 2].tolist() == found[:, 1].tolist() == [1.0, 0.5, 1.0]
    assert np.cumsum(found[:, 0]).tolist() == [1.0, 1.0, 1.5]  # the run has 2.5: regret is −1
    assert ScriptedArms(table).uniform_total(3) == pytest.approx(1.5 - 4.0 / 3.0)
    trace = dpb.simulate(dpb.arms.Exp3(), ScriptedArms(table), 3, 4, seed=1, progress=False)
    assert set(np.ravel(trace.regret("exp3")[:, -1])) <= {1.5 - sum(c) for c in _sums(table)}


def _sums(table: np.ndarray) -> list[tuple[float, ...]]:
    return [(a, b, c) for a in table[0] for b in table[1] for c in table[2]]


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_a_script_is_read_from_a_file(kind: str, tmp_path: Path) -> None:
    table, path = np.random.default_rng(1).integers(0, 2, (20, 3)).astype(float), tmp_path / f"a.{kind}"
    np.save(path, table) if kind == "npy" else np.savetxt(path, table, delimiter=",")
    for world in (ScriptedArms(path), environment(f"scripted-arms:rewards={path}")):
        assert isinstance(world, ScriptedArms) and world.rewards == str(path)
        np.testing.assert_array_equal(world.table(), table)
        assert ScriptedArms.from_json(world.to_json()) == world
    np.save(path, 1.0 - table) if kind == "npy" else np.savetxt(path, 1.0 - table, delimiter=",")
    np.testing.assert_array_equal(ScriptedArms(path).table(), 1.0 - table)  # not the one before


@pytest.mark.parametrize(
    ("rewards", "said"),
    [
        (np.zeros((4, 1)), r"at least 2 arms, got the shape \(4, 1\)"),
        (np.zeros(4), "at least 2 arms"),
        (np.zeros((0, 3)), "at least 2 arms"),
        (np.zeros((2, 2, 2)), "at least 2 arms"),
        ([[0, 1], [0, 2]], r"rewards in \[0, 1\], got 2 for arm 1 in row 1"),
        ([[0, 1], [np.nan, 1]], "got nan for arm 0 in row 1"),
        ([[0, 1], [1]], "rows of numbers"),
        ([["a", "b"]], "rows of numbers"),
        (3, "at least 2 arms"),
    ],
)
def test_a_bad_table_is_refused(rewards: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        ScriptedArms(rewards)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "arm,arm\n0,1\n", "cannot be read as a table of numbers"),
        ("a.csv", "0,1\n0\n", "cannot be read as a table of numbers"),
        ("a.csv", "0,1\n0,7\n", "the rewards in a.csv in [0, 1], got 7 for arm 1 in row 1"),
        ("a.npy", "0,1\n", "cannot be read as a table of numbers"),
        ("a.txt", "0,1\n", "an .npy or a .csv file, got a.txt"),
    ],
)
def test_a_bad_file_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=re.escape(said)):
        ScriptedArms(tmp_path / name).problem(None)
    with pytest.raises(InvalidInput, match="there is no file"):
        ScriptedArms(tmp_path / "absent.npy").problem(None)


def test_no_more_rounds_than_the_script_has() -> None:
    world = ScriptedArms(np.zeros((10, 2)))
    assert world.problem(10).horizon == 10
    with pytest.raises(InvalidInput, match="the script ends after 10 rounds, 11 were asked"):
        dpb.simulate(dpb.arms.Exp3(), world, 11, 1, progress=False)
    assert len(settled(world, [0] * 12)) == 12  # by hand it stays at its last row


@pytest.mark.parametrize(
    ("means", "changes", "said"),
    [
        (MEANS, (5,), "one for each of 1 change, got 3 rows"),
        (MEANS, (7, 3), "changes one after the other"),
        (MEANS, (3, 3), "changes one after the other"),
        (MEANS, (0, 3), r"changes\[0\] to be a whole number >= 1"),
        (MEANS, (2.5, 3), r"changes\[0\] to be a whole number"),
        (MEANS, 5, "changes as a sequence"),
        (((0.5, 1.5), (0.5, 0.5)), (5,), "got 1.5 for arm 1 in row 0"),
        (((0.5,), (0.5,)), (5,), "at least 2 arms"),
    ],
)
def test_bad_shifts_are_refused(means: object, changes: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        ShiftingArms(means, changes)  # type: ignore[arg-type]


def test_against_is_one_of_two_words() -> None:
    with pytest.raises(InvalidInput, match="against to be one of 'fixed', 'moving'"):
        ShiftingArms(MEANS, CHANGES, "best")  # type: ignore[arg-type]


def test_shifts_are_typed_with_bars_between_rows() -> None:
    typed = environment("shifting-arms:means=.9 .5 | .1 .5,changes=1e3,against=moving")
    assert typed == ShiftingArms(((0.9, 0.5), (0.1, 0.5)), (1000,), "moving")


@pytest.mark.parametrize(("against", "said"), [("fixed", True), ("moving", False)])
def test_compare_says_what_regret_is_against(against: str, said: bool) -> None:
    world = f"shifting-arms:means=.9 .1 | .1 .9,changes=100,against={against}"
    result = CliRunner().invoke(
        app, ["compare", "exp3", "--env", world, "--rounds", "200", "--runs", "2"]
    )
    assert result.exit_code == 0, result.output
    assert ("the one arm that was best" in result.output) == said
