"""The MovieLens reader on generated data of both formats, and on the real data where there are any."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from movielens_files import EDITIONS, write_1m, write_100k

import dpbandits as dpb
from dpbandits.errors import InvalidInput


@pytest.fixture(params=EDITIONS)
def edition(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    EDITIONS[request.param](tmp_path)
    return request.param, tmp_path


def test_both_editions_are_read_alike(edition: tuple[str, Path]) -> None:
    name, folder = edition
    world = dpb.worlds.MovieRatings(str(folder), top=4)
    films = world.films()
    assert films.edition == name
    assert films.titles == (
        "Twice the Same (1992)",
        "Café (1990)",
        "War Film (1991)",
        "Space, the (1993)",
    )
    assert films.rated.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]
    assert set(films.genres[3]) == {"Action", "Sci-Fi"}
    assert world.item_means() == pytest.approx((1, 2 / 3, 2 / 3, 1 / 3))
    # The two war films are parallel: the popular one, and the others.
    assert world.item_matroid().rank == 3 and world.best_items() == (0, 1, 3)
    assert world.best_return() == pytest.approx(2.0)
    assert dpb.worlds.Environment.from_json(world.to_json()) == world


def test_a_round_pays_for_what_one_person_rated(tmp_path: Path) -> None:
    write_100k(tmp_path)
    world = dpb.worlds.MovieRatings(str(tmp_path), top=4)
    policy = dpb.matroids.MatroidUCB()
    trace = dpb.simulate(policy, world, 2000, 2, seed=1, progress=False)
    learned = 2.0 - trace.regret(policy.name())[:, -1] / 2000
    assert np.all(learned > 1.9)
    assert np.all(np.abs(trace.reward(policy.name())[:, -1] / 2000 - learned) < 0.1)


def damage(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return apply


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (
            lambda folder: (folder / "u.item").unlink(),
            "looks like MovieLens 100K, but u.item is missing",
        ),
        (lambda folder: [f.unlink() for f in folder.iterdir()], "is no MovieLens folder"),
        (damage("u.data", lambda text: text[:-9]), "truncated: its last line"),
        (damage("u.data", lambda text: text[: text.rindex(b"\t")] + b"\n"), "line 8 is not a rating"),
        (damage("u.data", lambda text: text[: text.rindex(b"11")]), "8 ratings .* has 7"),
        (damage("u.data", lambda text: text + b"4\t77\t1\t1\n"), "rates film 77"),
        (damage("u.data", lambda text: b"\n"), "is empty"),
        (damage("u.item", lambda text: b"\n"), "is empty"),
        (damage("u.item", lambda text: text.decode("latin-1").encode()), "written in UTF-8"),
        (damage("u.item", lambda text: text.decode("latin-1").encode("utf-16")), "written in UTF-16"),
        (damage("u.item", lambda text: text.replace(b"|1|", b"|7|")), "is not a film"),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(
    harm: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    write_100k(tmp_path)
    harm(tmp_path)
    with pytest.raises(InvalidInput, match=says):
        dpb.worlds.MovieRatings(str(tmp_path), top=2).films()


def test_a_missing_folder_and_too_many_films_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        dpb.worlds.MovieRatings(str(tmp_path / "nowhere")).films()
    write_1m(tmp_path)
    with pytest.raises(InvalidInput, match="at most 4, the films rated; got 5"):
        dpb.worlds.MovieRatings(str(tmp_path), top=5).films()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    write_100k(tmp_path)
    world = dpb.worlds.MovieRatings(str(tmp_path), top=4)
    before = world.item_means()
    (tmp_path / "u.info").unlink()
    with (tmp_path / "u.data").open("a") as file:
        file.write("7\t5\t3\t1\n")
    os.utime(tmp_path / "u.data", ns=(1, 1))
    assert world.item_means() != before


REAL = os.environ.get("DPBANDITS_MOVIELENS")


@pytest.mark.skipif(REAL is None, reason="DPBANDITS_MOVIELENS names no folder of MovieLens data")
def test_the_real_top_hundred() -> None:
    world = dpb.worlds.MovieRatings(str(REAL))
    films = world.films()
    if films.edition != "MovieLens 100K":
        pytest.skip("the numbers below are of the 100K edition")
    assert films.rated.shape == (943, 100)
    assert world.item_matroid().rank == 17
    assert world.best_return() == pytest.approx(7.392, abs=5e-4)
