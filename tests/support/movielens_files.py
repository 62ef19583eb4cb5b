"""A few films and ratings in the formats of MovieLens 100K and 1M."""

from pathlib import Path

import numpy as np

from dpbandits.worlds.movielens import GENRES

FILMS = {
    1: ("Café (1990)", ("Comedy", "Drama")),
    2: ("War Film (1991)", ("War",)),
    3: ("Twice the Same (1992)", ("War",)),
    5: ("Space, the (1993)", ("Sci-Fi", "Action")),
    9: ("Unseen (1994)", ("Drama",)),
}
# Who rated what: film 3 is the most popular; 1 and 2 are equally so, the smaller number first.
RATINGS = [(7, 3), (8, 3), (11, 3), (7, 1), (8, 1), (8, 2), (11, 2), (11, 5)]


def write_100k(folder: Path) -> None:
    with (folder / "u.item").open("w", encoding="latin-1") as file:
        for number, (title, genres) in FILMS.items():
            flags = "|".join(str(int(name in genres)) for name in GENRES)
            file.write(f"{number}|{title}|01-Jan-1990||http://somewhere|{flags}\n")
        file.write("\n")
    lines = [f"{person}\t{film}\t4\t881250949\n" for person, film in RATINGS]
    (folder / "u.data").write_text("".join(lines))
    (folder / "u.info").write_text(f"3 users\n{len(FILMS)} items\n{len(RATINGS)} ratings\n")


def write_1m(folder: Path) -> None:
    with (folder / "movies.dat").open("w", encoding="latin-1") as file:
        for number, (title, genres) in FILMS.items():
            file.write(f"{number}::{title}::{'|'.join(genres)}\n")
    lines = [f"{person}::{film}::4::978300760\n" for person, film in RATINGS]
    (folder / "ratings.dat").write_text("".join(lines))


def write_many_1m(folder: Path, films: int = 110, people: int = 60) -> None:
    """As many films as the figures need, of two genres each; the first ones are rated most."""
    names, chance = GENRES[1:], np.random.default_rng(3)
    with (folder / "movies.dat").open("w", encoding="latin-1") as file:
        for film in range(films):
            genres = names[film % len(names)], names[(film // 3 + 1) % len(names)]
            file.write(f"{film + 1}::Film {film + 1} (1990)::{'|'.join(sorted(set(genres)))}\n")
    rated = chance.random((people, films)) < np.linspace(0.9, 0.1, films)
    lines = [f"{person + 1}::{film + 1}::4::978300760\n" for person, film in np.argwhere(rated)]
    (folder / "ratings.dat").write_text("".join(lines))


EDITIONS = {"MovieLens 100K": write_100k, "MovieLens 1M": write_1m}
