"""MovieLens as a matroid bandit: recommend films whose genres are linearly independent.

The data are read from a folder of the user's; nothing of them is part of this package. They are for
research, may not be passed on, and are to be cited: F. M. Harper and J. A. Konstan, "The MovieLens
Datasets: History and Context", ACM TiiS 5(4), 2015. See the README in the folder.
"""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance
from dpbandits.engine.state import FROM_RECIPE, Limits
from dpbandits.errors import InvalidInput
from dpbandits.problems import LinearMatroid
from dpbandits.problems.matroids.bases import Items, Rewards
from dpbandits.wording import counted
from dpbandits.worlds.matroids import MatroidEnvironment, settle_basis, start_rewards

Array = NDArray[np.float64]
LICENCE = (
    "MovieLens data (GroupLens, University of Minnesota): for research, not to be passed on; cite "
    "Harper & Konstan 2015. The README in the folder has the terms."
)


class Layout(NamedTuple):
    """How an edition of MovieLens is written."""

    name: str
    ratings: str
    films: str
    between: str  # in ratings
    between_films: str


LAYOUTS = (
    Layout("MovieLens 1M", "ratings.dat", "movies.dat", "::", "::"),
    Layout("MovieLens 100K", "u.data", "u.item", "\t", "|"),
)


class Films(NamedTuple):
    """The films most people rated, the most popular first, and who rated them."""

    edition: str
    titles: tuple[str, ...]
    genres: tuple[tuple[str, ...], ...]
    vectors: tuple[tuple[int, ...], ...]
    rated: NDArray[np.uint8]  # (people, films)


@dataclass(frozen=True)
class MovieRatings(MatroidEnvironment):
    """Recommend a basis of the `top` films that most people rated; a film pays 1 if she rated it.

    Each round a person is drawn from those in the data. A film's vector has a 1 for each of its genres,
    so that a basis is diverse. `path` is a MovieLens folder: 1M (ratings.dat, movies.dat) or 100K
    (u.data, u.item). The same person may be drawn in several rounds: a guarantee for one round's rewards
    is none for all that a person ever rated. Nor does it cover which films these are, and in what order:
    the matroid counts as public, and here it is made of everybody's ratings.
    """

    path: Annotated[str, "The folder of the MovieLens data, which you bring yourself."]
    top: Annotated[int, "How many of the most rated films take part."] = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", str(self.path))
        super().__post_init__()
        checks.integer(least=1, top=self.top)

    def films(self) -> Films:
        """What was read, once."""
        layout = _layout(Path(self.path))
        stamps = tuple(
            (Path(self.path) / name).stat().st_mtime_ns for name in (layout.ratings, layout.films)
        )
        return _read(Path(self.path), layout, self.top, stamps)

    def item_matroid(self) -> LinearMatroid:
        """The films' genres."""
        return LinearMatroid(self.films().vectors)

    def item_means(self) -> tuple[float, ...]:
        """The share of people who rated each film."""
        return tuple(self.films().rated.mean(axis=0).tolist())

    def in_words(self) -> str:
        """How many films, and of which edition."""
        films = self.films()
        return f"the {counted(len(films.titles), 'film')} of {films.edition} that most people rated"

    def world(self) -> "RatingsWorld":
        """Who rated what."""
        return RatingsWorld(self.films().rated, np.array(self.item_means()), *start_rewards(self))


class RatingsWorld(NamedTuple):
    """State of `MovieRatings`."""

    rated: NDArray[np.uint8]  # (people, films)
    means: Array
    best: float
    paid: Array  # (rank,) the rewards of a basis
    all_paid: Array  # (films,) those of all films, for a policy that looks at all once

    def limits(self) -> Limits:
        """What no round changes."""
        return {"rated": FROM_RECIPE, "means": FROM_RECIPE}

    def offer(self, chance: Chance) -> None:
        """No context."""

    def pay(self, context: None, action: Items, chance: Chance) -> Rewards:
        """Draw a person; an unrated film pays 0."""
        person = int(chance.random() * self.rated.shape[0])
        items = action[0]
        paid = self.paid if items.size == self.paid.size else self.all_paid
        for place in range(items.size):
            paid[place] = self.rated[person, items[place]]
        return (paid,)

    def settle(self, context: None, action: Items, reward: Rewards) -> tuple[float, float, float]:
        """The best return, the expected one of the basis, and what it paid."""
        return settle_basis(self.means, self.best, self.paid.size, action, reward)


def _layout(folder: Path) -> Layout:
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; give the path of a MovieLens folder")
    for layout in LAYOUTS:
        present = [(folder / name).is_file() for name in (layout.ratings, layout.films)]
        if all(present):
            return layout
        if any(present):
            absent = layout.films if present[0] else layout.ratings
            raise InvalidInput(f"{folder} looks like {layout.name}, but {absent} is missing")
    known = " or ".join(f"{layout.ratings} and {layout.films}" for layout in LAYOUTS)
    raise InvalidInput(f"{folder} is no MovieLens folder: expected {known} in it")


@functools.lru_cache(maxsize=4)
def _read(folder: Path, layout: Layout, top: int, stamps: tuple[int, ...]) -> Films:
    described = _read_films(folder / layout.films, layout)
    pairs = list(_read_ratings(folder / layout.ratings, layout, described))
    _check_number(folder / "u.info", layout, len(pairs))
    popular = Counter(film for _, film in pairs)
    if len(popular) < top:
        raise InvalidInput(f"expected top to be at most {len(popular)}, the films rated; got {top}")
    # Equally popular films in the order of their numbers, so that the choice is the same everywhere.
    chosen = sorted(popular, key=lambda film: (-popular[film], film))[:top]
    people = {person: row for row, person in enumerate(sorted({person for person, _ in pairs}))}
    columns = {film: column for column, film in enumerate(chosen)}
    rated = np.zeros((len(people), top), np.uint8)
    for person, film in pairs:
        if film in columns:
            rated[people[person], columns[film]] = 1
    names = sorted({genre for film in described.values() for genre in film[1]})
    return Films(
        edition=layout.name,
        titles=tuple(described[film][0] for film in chosen),
        genres=tuple(described[film][1] for film in chosen),
        vectors=tuple(tuple(int(name in described[film][1]) for name in names) for film in chosen),
        rated=rated,
    )


def _lines(path: Path, layout: Layout) -> Iterator[tuple[str, list[str]]]:
    """The fields of each line, with where it stands."""
    try:
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    # Both editions are Latin-1, where every byte is a letter; these are signs of another encoding.
    for sign, encoding in (("\x00", "UTF-16"), ("\xef\xbb\xbf", "UTF-8 with a mark"), ("Ã", "UTF-8")):
        if sign in text:
            raise InvalidInput(f"{path} is written in {encoding}; MovieLens files are Latin-1")
    lines = text.split("\n")
    if lines[-1] != "":
        raise InvalidInput(f"{path} is truncated: its last line does not end")
    between = layout.between if path.name == layout.ratings else layout.between_films
    for number, line in enumerate(lines[:-1], 1):
        if line.strip():
            yield f"{path}, line {number}", line.rstrip("\r").split(between)


def _read_films(path: Path, layout: Layout) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Title and genres by the film's number."""
    found = {}
    for where, fields in _lines(path, layout):
        if layout.between_films == "|":
            good = len(fields) == 5 + len(GENRES) and set(fields[5:]) <= {"0", "1"}
            genres = tuple(x for x, flag in zip(GENRES, fields[5:], strict=False) if flag == "1")
        else:
            good = len(fields) == 3
            genres = tuple(fields[-1].split("|"))
        if not good or not fields[0].isdigit():
            raise InvalidInput(f"{where} is not a film of {layout.name}; the file may be truncated")
        found[int(fields[0])] = (fields[1], genres)
    if not found:
        raise InvalidInput(f"{path} is empty")
    return found


def _read_ratings(
    path: Path, layout: Layout, films: dict[int, tuple[str, tuple[str, ...]]]
) -> Iterator[tuple[int, int]]:
    """Who rated which film."""
    empty = True
    for where, fields in _lines(path, layout):
        if len(fields) != 4 or not all(field.isdigit() for field in fields):
            raise InvalidInput(f"{where} is not a rating of {layout.name}; the file may be truncated")
        if int(fields[1]) not in films:
            raise InvalidInput(f"{where} rates film {fields[1]}, which {layout.films} does not have")
        empty = False
        yield int(fields[0]), int(fields[1])
    if empty:
        raise InvalidInput(f"{path} is empty")


def _check_number(path: Path, layout: Layout, found: int) -> None:
    """The 100K edition says how many ratings it has."""
    if layout.name == "MovieLens 100K" and path.is_file():
        for line in path.read_text(encoding="latin-1").splitlines():
            number, _, what = line.partition(" ")
            if what == "ratings" and number.isdigit() and int(number) != found:
                raise InvalidInput(
                    f"{path} says {number} ratings and {layout.ratings} has {found}: it may be truncated"
                )


GENRES = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)
