"""Save files: continued once, refused when damaged, newer or already continued."""

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.engine.handing import Hands
from dpbandits.errors import RoundError, SaveFileError
from dpbandits.testing.driving import state_bytes


def trained(seed: int | None = 1) -> dpb.Learner:
    policy = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0))
    learner = policy.start(dpb.Arms(3, horizon=500), seed=seed)
    for _ in range(100):
        learner.update(learner.select(), 1.0)
    return learner


def rewrite(path: Path, change: dict[str, Any]) -> None:
    """Change values of the header, keeping the rest."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes()) | change
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)


def test_the_file_is_the_owners_only_even_over_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "x.dpb"
    path.write_text("old")
    path.chmod(0o644)
    trained().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "raw, unprotected data" in bytes(np.load(path)["header"]).decode()
    assert [p.name for p in tmp_path.iterdir()] == ["x.dpb"]


def test_it_continues_once_and_can_be_saved_again(tmp_path: Path) -> None:
    path = trained().save(tmp_path / "x.dpb")
    learner = dpb.load(path)
    with pytest.raises(SaveFileError, match="resumed already"):
        dpb.load(path)
    with pytest.raises(SaveFileError, match="resumed already"):
        dpb.load(tmp_path / "x.dpb.continued")
    learner.save(path)
    assert dpb.load(path).rounds == 100


def test_an_unseeded_learner_takes_fresh_randomness(tmp_path: Path) -> None:
    path = trained(seed=None).save(tmp_path / "x.dpb")
    with np.load(path) as archive:
        assert json.loads(archive["header"].tobytes())["streams"] is None
    copy = tmp_path / "y.dpb"
    copy.write_bytes(path.read_bytes())
    first, second = dpb.load(path), dpb.load(copy)
    assert state_bytes(first) == state_bytes(second)
    # 400 draws of three Gaussians: the same choices throughout would be a miracle (below 1e-20).
    chosen = [[one.decide().action for _ in range(400)] for one in (first, second)]
    assert chosen[0] != chosen[1]


def test_an_open_round_is_kept_and_its_action_and_ticket_stay_good(tmp_path: Path) -> None:
    learner = trained()
    arm = learner.select()
    learner = dpb.load(learner.save(tmp_path / "x.dpb"))
    learner.update(arm, 1.0)
    ticket = learner.decide()
    learner = dpb.load(learner.save(tmp_path / "y.dpb"))
    learner.update(ticket, 1.0)
    assert learner.rounds == 102


@pytest.mark.parametrize("keep", [0, 1, 10, 500, -1, -30])
def test_a_truncated_file_is_refused_and_kept(tmp_path: Path, keep: int) -> None:
    path = trained().save(tmp_path / "x.dpb")
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    with pytest.raises(SaveFileError, match="damaged or not a saved learner"):
        dpb.load(path)
    assert path.read_bytes() == whole[:keep]


def test_flipped_bits_are_noticed(tmp_path: Path) -> None:
    path = trained().save(tmp_path / "x.dpb")
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("secret.total.npy").header_offset
    whole[start + 180] ^= 1
    path.write_bytes(whole)
    with pytest.raises(SaveFileError):
        dpb.load(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"format": 99, "version": "9.9.9"},
            "written by dpbandits 9.9.9 in format 99; .* reads format 3",
        ),
        ({"format": "new"}, "not a saved learner"),
        ({"policy": {"kind": "HalfNoise"}}, "no recipe is called 'HalfNoise'"),
        ({"policy": {"kind": "Arms", "arms": 3}}, "expected a Policy"),
        ({"policy": {"kind": "GaussianThompson"}}, "does not follow from the recipe|of shape"),
        ({"problem": {"kind": "Arms", "arms": 4, "horizon": 500}}, "of shape"),
        ({"problem": {"kind": "Arms", "arms": 3, "horizon": 900}}, "does not follow from the recipe"),
        ({"problem": {"kind": "Arms", "arms": 3, "size": 900}}, "no field of Arms is called 'size'"),
        ({"decided": -4}, "expected decided"),
        ({"decided": 60}, "its counts of rounds do not agree"),
        ({"in_flight": 0}, "expected in_flight"),
        ({"past": [-1, 0]}, "expected history"),
        ({"past": [10**6, 0]}, "the rows it was started from do not agree"),
        ({"given": 3}, "the rows it was started from do not agree|counts of rounds are not"),
        ({"ticket_key": "x"}, "not a learner this version can continue"),
        ({"streams": [{}, {}, {}]}, "not a learner this version can continue"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, change: Any, says: str) -> None:
    path = trained().save(tmp_path / "x.dpb")
    rewrite(path, change)
    with pytest.raises(SaveFileError, match=says):
        dpb.load(path)
    assert path.exists()


def test_no_file_and_no_right_to_read(tmp_path: Path) -> None:
    with pytest.raises(SaveFileError, match="there is no save file"):
        dpb.load(tmp_path / "none.dpb")
    with pytest.raises(SaveFileError, match="there is no save file"):
        dpb.load(tmp_path)
    assert not list(tmp_path.iterdir())


def test_saving_ends_the_learner(tmp_path: Path) -> None:
    learner = trained()
    learner.save(tmp_path / "x.dpb")
    for call in (learner.select, lambda: learner.save(tmp_path / "y.dpb")):
        with pytest.raises(RoundError, match=r"it was saved; resume it with dpbandits.load"):
            call()


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_saved_learner_keeps_no_generators_and_no_raw_data(compiled: bool, tmp_path: Path) -> None:
    policy = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))
    learner = policy.start(dpb.Arms(3), in_flight=4, compiled=compiled)
    for _ in range(9):
        learner.update(learner.decide(), 0.8125)
    assert {"_streams", "_noise", "_explore"} <= vars(learner).keys() and learner._secret is not None
    assert [opened.reward for opened in learner.open_rounds()].count(0.8125) == 4
    before = repr(learner), learner.rounds, str(learner.guarantee), learner.spent
    written = learner.save(tmp_path / "x.dpb")
    assert not {"_streams", "_noise", "_explore"} & vars(learner).keys() and learner._secret is None
    assert all(opened.reward is None for opened in learner.open_rounds())
    assert vars(learner._rounds._hands) == vars(Hands())  # none is held for compiled code
    assert (repr(learner), learner.rounds, str(learner.guarantee), learner.spent) == before
    with pytest.raises(RoundError, match="it was saved"):
        learner.renew()
    loaded = dpb.load(written)
    assert [opened.reward for opened in loaded.open_rounds()].count(0.8125) == 4


def test_a_link_is_continued_once_too(tmp_path: Path) -> None:
    path = trained().save(tmp_path / "x.dpb")
    (tmp_path / "link").symlink_to(path)
    dpb.load(tmp_path / "link")
    for again in (tmp_path / "link", path):
        with pytest.raises(SaveFileError):
            dpb.load(again)


def test_a_guessed_draft_name_is_not_written_to(tmp_path: Path) -> None:
    trap = tmp_path / "x.dpb.part"
    trap.write_text("mine")
    trap.chmod(0o666)
    path = trained().save(tmp_path / "x.dpb")
    assert trap.read_text() == "mine" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_save_leaves_the_learner_and_the_folder_as_they_were(tmp_path: Path) -> None:
    learner = trained()
    (tmp_path / "folder").mkdir()
    for path, says in [
        (tmp_path / "none" / "x.dpb", "No such file"),
        (tmp_path / "folder", "Is a directory|not empty|File exists"),
        (tmp_path / "x.continued", "could not be loaded"),
        (tmp_path / ("x" * 300), "too long"),
        ("x\0y", "null"),
        (None, "NoneType"),
    ]:
        with pytest.raises(SaveFileError, match=says):
            learner.save(path)  # type: ignore[arg-type]
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]
    learner.update(learner.select(), 1.0)
    assert dpb.load(learner.save(tmp_path / "x.dpb")).rounds == 101


@pytest.mark.parametrize("path", [None, 3, "", "x\0y", "x" * 300])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(SaveFileError):
        dpb.load(path)


def test_a_hard_link_is_refused_and_both_names_are_kept(tmp_path: Path) -> None:
    path = trained().save(tmp_path / "x.dpb")
    (tmp_path / "y.dpb").hardlink_to(path)
    for name in ("x.dpb", "y.dpb"):
        with pytest.raises(SaveFileError, match="has a hard link, by which it could be continued again"):
            dpb.load(tmp_path / name)
    (tmp_path / "y.dpb").unlink()
    assert dpb.load(path).rounds == 100


def test_a_file_that_cannot_be_read_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = trained().save(tmp_path / "x.dpb")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", denied)
        with pytest.raises(SaveFileError, match=r"cannot be read: .*Permission denied"):
            dpb.load(path)
    assert dpb.load(path).rounds == 100


@pytest.mark.parametrize(
    "header", ["[" * 100_000, "[]", "3", "null", '"format"', "{}", '{"format": null}', "{", "\xff"]
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: str) -> None:
    path = trained().save(tmp_path / "x.dpb")
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["header"] = np.frombuffer(header.encode("latin-1"), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(SaveFileError, match="damaged or not a saved learner"):
        dpb.load(path)
    assert path.exists()


def test_a_snapshot_is_no_save(tmp_path: Path) -> None:
    """The learner that it was made of may be going on with the same noise."""
    learner = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3))
    path = tmp_path / "snapshot"
    path.write_bytes(learner.snapshot())
    with pytest.raises(SaveFileError, match="snapshot for a service"):
        dpb.load(path)
    assert path.exists() and not learner.seeded
