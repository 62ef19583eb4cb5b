"""Save files of learners: raw buffers, readable by the owner only, continued at most once.

A file is a NumPy archive (a zip with checksums) of the state's arrays and one JSON header. Nothing is
pickled, and classes are looked up in a closed table. Continuing one save twice, on different people,
would reuse its noise: so saving ends a learner, loading renames the file, and a renamed file is refused,
as is one with a second name (a hard link).

**What is checked.** The recipe is made anew, and with it all that follows from it: the scale of noise,
and every array that `begin` alone makes (`FROM_RECIPE` in `engine/state.py`), must be bit for bit what
this version makes. So a save of another version can be resumed if its format is this one and its
noise is still right, and is refused otherwise. All other arrays must have the right shape and type, and
values that play can lead to (`limits`); the counts of rounds in the header must be those of the state,
rounds in flight must be of actions that exist, and arms in play those that the changes lead to.

**What is not.** The file is not signed. Whoever can write it can put other data in the place of what was
observed, can make a learner a seeded one and choose its generators, and so know its noise, or draw in
floating point what was exact; can change the budget together with all that follows from it, under which
earlier releases were not made; can give back draws and decisions that were spent, or make people unknown
from whom enough was learned. Whoever can copy it can continue it twice. Keep it where only its owner can
write. (`learner.seeded` and `learner.noise` tell what was loaded.)
"""

import io
import json
import math
import os
import platform
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy
from threadpoolctl import threadpool_info

from dpbandits import checks
from dpbandits.engine import Streams, bare, beyond_limits, leaves, wait, wrapped
from dpbandits.engine.flight import (
    Flight,
    kept_action,
    kept_context,
    kept_reward,
    put_context,
    put_outcome,
    start_flight,
)
from dpbandits.errors import SaveFileError
from dpbandits.policies.changes import Change, arms_away
from dpbandits.policies.learner import Learner
from dpbandits.policies.people import People
from dpbandits.policies.policy import Policy
from dpbandits.policies.rounds import Past, Round, Rounds, counting_part, rounds_counted
from dpbandits.problems import Problem
from dpbandits.version import __version__

FORMAT = 3
_USED = ".continued"
_CHACHA = 20  # rounds of the cipher
_NOBODY = bytes(16)  # the token of a round whose person was not named
_KEY = 16  # bytes, of tickets


def save(learner: Learner, path: str | Path) -> Path:
    """Write a learner, with its rounds in flight; replaces an older save of that name as a whole."""
    try:
        path = Path(path)
        if path.suffix == _USED:
            raise SaveFileError(f"a file called {path.name} could not be loaded: {_USED} says it was")
        return _written(learner, path)
    except (OSError, TypeError, ValueError) as error:
        raise SaveFileError(f"the learner cannot be saved to {_shown(path)}: {error}") from error


def _written(learner: Learner, path: Path) -> Path:
    # Without a seed the noise comes fresh from the operating system, so nothing is kept to repeat.
    archive = _archive(learner, streams=learner._seeded)
    # A new file of an unguessable name, readable by its owner only, moved into place whole.
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(archive)
            file.flush()
            os.fsync(handle)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path


def snapshot(learner: Learner) -> bytes:
    """A learner as bytes, generators included, to play its calls back after a crash. Not for users."""
    return _archive(learner, streams=True)


def restore(data: bytes) -> Learner:
    """The learner of a snapshot, bit for bit. Not for users: resuming one snapshot twice, on
    different people, uses the same noise twice.
    """
    return _restored("the snapshot", *_read("the snapshot", data))


def fingerprint() -> dict[str, str]:
    """What must be alike for the same calls to give the same bits: versions, processor and BLAS."""
    pools = sorted(
        " ".join(str(pool[key]) for key in ("internal_api", "version", "architecture") if key in pool)
        for pool in threadpool_info()
    )
    return {
        "dpbandits": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "scipy": scipy.__version__,
        "randomgen": metadata.version("randomgen"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "blas": ", ".join(pools),
    }


def load(path: str | Path) -> Learner:
    """Continue a saved learner, once. The file is renamed so that nobody continues it again.

    What is left, ``….continued``, holds raw data and may be deleted.
    """
    try:
        path = Path(path)
        target = path.resolve()
        used = target.with_name(target.name + _USED)
        if target.suffix == _USED or (used.exists() and not target.exists()):
            raise SaveFileError(
                f"{_shown(path)} was resumed already, and doing so twice would reuse its noise; "
                "what was learned after it is in the next save, if there was one"
            )
        if not target.is_file():
            raise SaveFileError(f"there is no save file at {_shown(path)}")
        target.rename(used)  # claimed before it is read: of two processes, one finds nothing
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise SaveFileError(f"{_shown(path)} cannot be claimed: {error}") from error
    try:
        header, arrays = _read(path, _contents(path, used))
        if header.get("streams") is not None and header.get("seeded") is not True:
            # Those of a snapshot: the learner it was taken from may still be using the same noise.
            raise SaveFileError(
                f"{_shown(path)} is a snapshot for a service to restore, not a save to resume from"
            )
        return _restored(path, header, arrays)
    except BaseException:
        used.rename(target)
        raise


def _shown(path: Any) -> str:
    """A path in an error, whatever was given for one."""
    plain = isinstance(path, str | Path) and str(path).isprintable() and 0 < len(str(path)) <= 200
    return str(path) if plain else checks.shown(path)


def _contents(path: Path, used: Path) -> bytes:
    try:
        if used.stat().st_nlink > 1:
            raise SaveFileError(f"{_shown(path)} has a hard link, by which it could be continued again")
        return used.read_bytes()
    except OSError as error:
        raise SaveFileError(f"{_shown(path)} cannot be read: {error}") from error


def _archive(learner: Learner, *, streams: bool) -> bytes:
    rounds = learner._rounds
    header = {
        "format": FORMAT,
        "version": __version__,
        "note": "raw, unprotected data: keep secret, continue once",
        "policy": learner.policy.to_dict(),
        "problem": learner.problem.to_dict(),
        "in_flight": rounds.in_flight,
        "patience": rounds.patience,
        "decided": rounds.decided,
        "observed": rounds.observed,
        "closings": rounds.closings,
        "closed_then": rounds.closed_then,
        "given": rounds.given,
        "past": rounds.past,
        "now": rounds.now,
        "leader": _listed_leader(rounds),
        "changes": learner.changes,
        "ticket_key": learner._key.hex(),
        "seeded": learner._seeded,
        "noise": learner.noise,
        "streams": listed_streams(learner._streams) if streams else None,
    }
    parts = {
        "public": rounds.public,
        "secret": rounds.secret,
        "flight": _flight(learner.problem, rounds),
    }
    arrays: dict[str, Any] = {
        f"{part}.{name}": np.asarray(value)
        for part, state in parts.items()
        for name, value in leaves(state)
    }
    arrays["answered"] = np.array([one.answered for one in rounds.open], np.bool_)
    if rounds.people is not None:
        arrays |= {f"people.{name}": value for name, value in rounds.people.arrays().items()}
        # Each with a byte that says whether her round may be learned from.
        tokens = b"".join((one.person or _NOBODY) + bytes([one.counts]) for one in rounds.open)
        arrays["persons"] = np.frombuffer(tokens, np.uint8).reshape(-1, len(_NOBODY) + 1)
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    return buffer.getvalue()


def _flight(problem: Problem, rounds: Rounds) -> Flight:
    """The open rounds as arrays, in the order of decisions."""
    flight = start_flight(len(rounds.open), problem.kept_features, problem.kept_items)
    for place, one in enumerate(rounds.open):
        put_context(flight, place, *one.kept)
        reward = one.reward if one.answered else problem.missing
        put_outcome(flight, place, wrapped(one.action), wrapped(reward))
        flight.began[place] = one.began
    return flight


def _reopen(
    problem: Problem, flight: Flight, answered: Any, persons: Any, first: int
) -> Iterator[Round]:
    for place in range(flight.began.size):
        kept = kept_context(flight, place), bare(kept_action(flight, place))
        chosen = kept[1]
        person = None if persons is None else persons[place, :-1].tobytes()
        if not problem.is_action(chosen):
            raise ValueError("a round in flight has an action that there is not")
        if problem.kept_features == 0:
            problem.context(kept[0])
        one = Round(
            number=first + place,
            action=chosen,
            kept=kept,
            began=float(flight.began[place]),
            person=None if person == _NOBODY else person,
            counts=persons is None or bool(persons[place, -1]),
            answered=bool(answered[place]),
        )
        if one.answered:
            one.reward = bare(kept_reward(flight, place))
        yield one


def _restored(path: str | Path, header: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    if header["format"] != FORMAT:
        raise SaveFileError(
            f"{_shown(path)} was written by dpbandits {header.get('version')} in format "
            f"{header['format']}; this is {__version__}, which reads format {FORMAT}"
        )
    try:
        return _learner(header, arrays)
    except Exception as error:  # whatever a recipe or a state that was tampered with runs into
        raise SaveFileError(
            f"{_shown(path)} is not a learner this version can continue: {error}"
        ) from error


def _learner(header: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    policy, problem = Policy.from_dict(header["policy"]), Problem.from_dict(header["problem"])
    policy.check(problem)
    public, secret = policy.begin(problem)
    answered = arrays.pop("answered")
    if answered.dtype != np.bool_ or answered.ndim != 1:
        raise ValueError("its open rounds do not say which of them are answered")
    flight = start_flight(answered.size, problem.kept_features, problem.kept_items)
    for part, state in (("public", public), ("secret", secret), ("flight", flight)):
        _fill(state, part, arrays)
    for part, state in (("public", public), ("secret", secret)):
        _check_limits(state, part)
    learner = Learner(
        policy,
        problem,
        public,
        secret,
        _streams(header["streams"], header["seeded"]),
        seeded=header["seeded"],
        compiled=policy.compiles,
        in_flight=header["in_flight"],
        patience=header["patience"],
        key=_ticket_key(header["ticket_key"]),
        people=_people(problem, arrays),
        exact=_drawn_exactly(policy, problem, header["noise"]),
    )
    rounds = learner._rounds
    for name in ("decided", "observed", "closings", "closed_then", "given"):
        checks.integer(least=0, **{name: header[name]})
        setattr(rounds, name, header[name])
    rounds.now = checks.number("now", header["now"])
    rounds.leader = _leader(problem, header.get("leader"))
    if not math.isfinite(rounds.now) or not (flight.began <= rounds.now).all():
        raise ValueError("its times do not agree")
    persons = _persons(rounds.people, answered.size, arrays)
    rounds.open.extend(_reopen(problem, flight, answered, persons, rounds.decided - answered.size))
    _check_counts(rounds)
    rounds.past = _past(header["past"], rounds)
    learner._changes = [Change(*one) for one in header["changes"]]
    _check_changes(learner)
    if arrays:
        raise ValueError(f"{min(arrays)} belongs to no learner of this version")
    return learner


def _past(listed: Any, rounds: Rounds) -> Past:
    """The rows it was started from, no more than there are rounds."""
    past = Past(*listed)
    checks.integer(least=0, history=past.history, public_history=past.public_history)
    if past.history > rounds.closed or rounds.given > past.public_history:
        raise ValueError("its counts of rounds and of the rows it was started from do not agree")
    return past


def _listed_leader(rounds: Rounds) -> Any:
    """The best action known, and when: finding it again may draw, where it has been found already."""
    when, action = rounds.leader
    if when is None:
        return None
    observed, away = when
    return [observed, None if away is None else away.hex(), _listed(action)]


def _leader(problem: Problem, listed: Any) -> tuple[Any, Any]:
    if listed is None:
        return None, None
    observed, away, action = listed
    checks.integer(least=0, observed=observed)
    if isinstance(action, list):
        action = np.array(action, np.int64)
    if action is not None and not problem.is_action(action):
        raise ValueError("the best action known is one that there is not")
    return (observed, None if away is None else bytes.fromhex(away)), action


def _drawn_exactly(policy: Policy, problem: Problem, noise: Any) -> bool:
    checks.one_of(("exact", "float"), noise=noise)
    if noise == "exact" and (refused := policy.refuses_exact_noise(problem)):
        raise ValueError(f"its noise cannot be exact: {refused}")
    return bool(noise == "exact")


def listed_streams(streams: Streams) -> list[Any]:
    """The states of generators as JSON has them."""
    return [_listed(one.bit_generator.state) for one in streams]


def restored_streams(states: Any) -> Streams:
    """The same back: those of a seed, or of the operating system."""
    try:
        return _streams(states, states[0]["bit_generator"] == "PCG64")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SaveFileError("the generators of a snapshot are not those of this version") from error


def _listed(state: Any) -> Any:
    """A generator's state as JSON has it."""
    if isinstance(state, dict):
        return {name: _listed(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _unlisted(state: Any, like: Any) -> Any:
    """The same from JSON; anything but the shape that such a generator has is refused."""
    if isinstance(like, dict):
        if not isinstance(state, dict) or state.keys() != like.keys():
            raise ValueError("its generators are not those of this version")
        return {name: _unlisted(state[name], like[name]) for name in like}
    if isinstance(like, np.ndarray):
        found = np.array(state, like.dtype)
        if found.shape != like.shape:
            raise ValueError("its generators are not those of this version")
        return found
    if type(state) is not type(like) or (not isinstance(like, int) and state != like):
        raise ValueError("its generators are not those of this version")
    return state


def _streams(states: Any, seeded: Any) -> Streams:
    """Those of a seeded learner or a snapshot, fresh ones otherwise."""
    if type(seeded) is not bool or (seeded and states is None):
        raise ValueError("it does not say how its noise continues")
    # Of the same kind as before: seeds and the operating system have generators of their own.
    streams = Streams.of(0 if seeded else None)
    if states is not None:
        for generator, state in zip(streams, states, strict=True):
            bits: Any = generator.bit_generator
            given = _unlisted(state, bits.state)
            if given.get("state", {}).get("rounds", _CHACHA) != _CHACHA:
                raise ValueError("its generators are not those of this version")
            bits.state = given
    return streams


def _ticket_key(text: str) -> bytes:
    key = bytes.fromhex(text)
    if len(key) != _KEY:
        raise ValueError(f"the key of its tickets has {len(key)} bytes, not {_KEY}")
    return key


def _persons(people: People | None, size: int, arrays: dict[str, Any]) -> Any:
    """For whom the open rounds are, where people are told apart."""
    persons = arrays.pop("persons", None)
    if (persons is None) != (people is None):
        raise ValueError("its open rounds do not say for whom they are")
    if persons is not None and (
        persons.dtype != np.uint8
        or persons.shape != (size, len(_NOBODY) + 1)
        or (persons[:, -1] > 1).any()
    ):
        raise ValueError("its open rounds do not say for whom they are")
    return persons


def _check_counts(rounds: Rounds) -> None:
    """The header's counts of rounds against each other and against those of the state."""
    public, closed = rounds.public, rounds.closed
    fits = rounds.observed <= closed if rounds.people else rounds.observed == closed
    if not (fits and rounds.closed_then <= closed and len(rounds.open) <= rounds.in_flight):
        raise ValueError("its counts of rounds do not agree")
    counted = rounds_counted(public)
    if counted is not None and counted != rounds.observed + rounds.given:
        raise ValueError("its counts of rounds are not those of its state")
    # A horizon is one of decisions, some of which may be for people from whom nothing is learned.
    if hasattr(public, "drawn_for") and public.drawn_for() > rounds.decided + rounds.closings:
        raise ValueError("its counts of rounds are not those of its state")
    fresh, _ = rounds.policy.begin(rounds.problem)
    for one in rounds.open:
        if one.counts and (one.person is not None or not rounds.closes_at_once):
            wait(fresh, wrapped(one.kept[1]), 1)
    if not np.array_equal(_waiting(public), _waiting(fresh)):
        raise ValueError("its counts of rounds in flight are not those of its state")


def _waiting(public: Any) -> Any:
    """What the state has counted of the rounds in flight."""
    counts = counting_part(public, "in_flight")
    return getattr(public, "waiting", 0) if counts is None else counts.in_flight()


def _check_changes(learner: Learner) -> None:
    """Arms that came and went lead to those in play."""
    before = 0
    for one in learner.changes:
        checks.integer(least=before, decided=one.decided)
        before = one.decided
    away = arms_away(learner)
    fits = away is None or np.array_equal(away, learner._public.away)
    if before > learner.decided or not fits:
        raise ValueError("its arms in play are not those that its changes lead to")


def _people(problem: Problem, arrays: dict[str, Any]) -> People | None:
    names = [name for name in arrays if name.startswith("people.")]
    found = {name.partition(".")[2]: arrays.pop(name) for name in names}
    if found:
        return People.from_arrays(problem.rounds_per_person or 1, found)
    if problem.rounds_per_person is not None:
        raise ValueError("it does not say from whom was learned already")
    return None


def _read(path: str | Path, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        for array in arrays.values():
            if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
                raise ValueError("a flag that is neither")
        header = json.loads(arrays.pop("header").tobytes())
        if not isinstance(header["format"], int):
            raise ValueError("no format number")
    except Exception as error:  # whatever readers of zip, NumPy's format and JSON run into
        raise SaveFileError(f"{_shown(path)} is damaged or not a saved learner of dpbandits") from error
    return header, arrays


def _fill(state: Any, part: str, arrays: dict[str, Any]) -> None:
    """Put the saved arrays into a fresh state; what is missing, misshapen or not by the recipe is an
    error.
    """
    told = {name for name, _ in leaves(state, sent=True)}
    for name, value in leaves(state):
        if (saved := arrays.pop(f"{part}.{name}", None)) is None:
            raise ValueError(f"{part}.{name} is missing; another version may have written it")
        expected = np.asarray(value)
        if saved.shape != expected.shape or saved.dtype != expected.dtype:
            raise ValueError(
                f"{part}.{name} is {saved.dtype} of shape {saved.shape}, expected {expected.dtype} of "
                f"shape {expected.shape}"
            )
        if isinstance(value, np.ndarray) and name in told:
            value[...] = saved
        elif not np.array_equal(saved, expected):
            raise ValueError(f"{part}.{name} does not follow from the recipe")


def _check_limits(state: Any, part: str) -> None:
    with np.errstate(all="ignore"):
        beyond = next(beyond_limits(state), None)
    if beyond is not None:
        raise ValueError(f"{part}.{beyond} is nothing that play can have led to")
