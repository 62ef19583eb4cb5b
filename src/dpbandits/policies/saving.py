"""Save files of learners: raw buffers, readable by the owner only, continued at most once.

A file is a NumPy archive (a zip with checksums) of the state's arrays and one JSON header. Nothing is
pickled, and classes are looked up in a closed table. Continuing one save twice, on different people,
would reuse its noise: so saving ends a learner, loading renames the file, a renamed file is refused.
"""

import io
import json
import os
import platform
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_info

from dpbandits import checks
from dpbandits.engine import Streams, bare, leaves, wrapped
from dpbandits.engine.flight import (
    Flight,
    kept_action,
    kept_context,
    kept_reward,
    put_context,
    put_outcome,
    start_flight,
)
from dpbandits.errors import DPBanditsError, SaveFileError
from dpbandits.policies.changes import Change
from dpbandits.policies.learner import Learner
from dpbandits.policies.people import People
from dpbandits.policies.policy import Policy
from dpbandits.policies.rounds import Round, Rounds
from dpbandits.problems import Problem
from dpbandits.version import __version__

FORMAT = 2
_USED = ".continued"
_NOBODY = bytes(16)  # the token of a round whose person was not named


def save(learner: Learner, path: Path) -> Path:
    """Write a learner, with its rounds in flight; replaces an older save of that name as a whole."""
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
    """The learner of a snapshot, bit for bit. Not for users: going on from one snapshot twice, on
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
    except (TypeError, ValueError, OSError, RuntimeError):  # no path, or not one of this system
        raise SaveFileError(f"expected the path of a save file, got {checks.shown(path)}") from None
    used = target.with_name(target.name + _USED)
    if target.suffix == _USED or (used.exists() and not target.exists()):
        raise SaveFileError(f"{path} was continued already; doing so twice would reuse its noise")
    if not target.is_file():
        raise SaveFileError(f"there is no save file at {path}")
    try:
        target.rename(used)  # claimed before it is read: of two processes, one finds nothing
    except OSError as error:
        raise SaveFileError(f"{path} cannot be claimed: {error}") from error
    try:
        return _restored(path, *_read(path, used.read_bytes()))
    except BaseException:
        used.rename(target)
        raise


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
        "now": rounds.now,
        "changes": learner.changes,
        "ticket_key": learner._key.hex(),
        "seeded": learner._seeded,
        "streams": [one.bit_generator.state for one in learner._streams] if streams else None,
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
        chosen = int(flight.actions[place]) if problem.kept_features else kept[1]
        person = None if persons is None else persons[place, :-1].tobytes()
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
            f"{path} was written by dpbandits {header['version']} in format {header['format']}; this is "
            f"{__version__}, which reads format {FORMAT}"
        )
    try:
        policy = Policy.from_dict(header["policy"])
        problem = Problem.from_dict(header["problem"])
        policy.check(problem)
        counts = {name: header[name] for name in ("decided", "observed", "closings", "closed_then")}
        checks.integer(least=0, **counts)
        public, secret = policy.begin(problem)
        answered = np.atleast_1d(arrays["answered"])
        flight = start_flight(answered.size, problem.kept_features, problem.kept_items)
        for part, state in (("public", public), ("secret", secret), ("flight", flight)):
            _fill(state, part, arrays)
        streams = Streams.of(None)
        if header["streams"] is not None:
            for generator, state in zip(streams, header["streams"], strict=True):
                generator.bit_generator.state = state
        learner = Learner(
            policy,
            problem,
            public,
            secret,
            streams,
            seeded=bool(header["seeded"]),
            compiled=policy.compiles,
            in_flight=header["in_flight"],
            patience=header["patience"],
            key=bytes.fromhex(header["ticket_key"]),
            people=_people(problem, arrays),
        )
        rounds = learner._rounds
        learner._changes = [Change(*one) for one in header["changes"]]
        for name, count in counts.items():
            setattr(rounds, name, count)
        rounds.now = checks.number("now", header["now"])
        closed = rounds.decided - answered.size
        if not (rounds.observed <= closed and answered.size <= rounds.in_flight):
            raise ValueError("its counts of rounds do not agree")
        persons = arrays.get("persons")
        if persons is not None and persons.shape != (answered.size, len(_NOBODY) + 1):
            raise ValueError("its open rounds do not say for whom they are")
        rounds.open.extend(_reopen(problem, flight, answered, persons, closed))
    except (DPBanditsError, KeyError, TypeError, ValueError, IndexError) as error:
        raise SaveFileError(f"{path} is not a learner this version can continue: {error}") from error
    return learner


def _people(problem: Problem, arrays: dict[str, Any]) -> People | None:
    found = {
        name.partition(".")[2]: array for name, array in arrays.items() if name.startswith("people.")
    }
    if found:
        return People.from_arrays(problem.rounds_per_person or 1, found)
    if problem.rounds_per_person is not None:
        raise ValueError("it does not say from whom was learned already")
    return None


def _read(path: str | Path, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        if not isinstance(header["format"], int):
            raise ValueError("no format number")
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise SaveFileError(f"{path} is damaged or not a saved learner of dpbandits") from error
    return header, arrays


def _fill(state: Any, part: str, arrays: dict[str, Any]) -> None:
    """Put the saved arrays into a fresh state; anything missing, extra or misshapen is an error."""
    for name, value in leaves(state):
        if (saved := arrays.get(f"{part}.{name}")) is None:
            raise ValueError(f"{part}.{name} is missing; another version may have written it")
        expected = np.asarray(value)
        if saved.shape != expected.shape or saved.dtype != expected.dtype:
            raise ValueError(
                f"{part}.{name} is {saved.dtype} of shape {saved.shape}, expected {expected.dtype} of "
                f"shape {expected.shape}"
            )
        if isinstance(value, np.ndarray):
            value[...] = saved
        elif saved != value:
            raise ValueError(f"{part}.{name} does not follow from the recipe")
