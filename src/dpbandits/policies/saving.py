"""Save files of learners: raw buffers, readable by the owner only, continued at most once.

A file is a NumPy archive (a zip with checksums) of the state's arrays and one JSON header. Nothing is
pickled, and classes are looked up in a closed table. Continuing one save twice, on different people,
would reuse its noise: so saving ends a learner, loading renames the file, a renamed file is refused.
"""

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits import checks
from dpbandits.engine import Streams, leaves
from dpbandits.errors import DPBanditsError, SaveFileError
from dpbandits.policies.learner import Learner
from dpbandits.policies.policy import Policy
from dpbandits.problems import Problem
from dpbandits.version import __version__

FORMAT = 1
_USED = ".continued"


def save(learner: Learner, path: Path) -> Path:
    """Write a learner between two rounds; replaces an older save of that name as a whole."""
    header = {
        "format": FORMAT,
        "version": __version__,
        "note": "raw, unprotected data: keep secret, continue once",
        "policy": learner.policy.to_dict(),
        "problem": learner.problem.to_dict(),
        "rounds": learner.rounds,
        "streams": _stream_states(learner),
    }
    arrays: dict[str, Any] = {
        f"{part}.{name}": np.asarray(value)
        for part, state in (("public", learner._public), ("secret", learner._secret))
        for name, value in leaves(state)
    }
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    # A new file of an unguessable name, readable by its owner only, moved into place whole.
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(handle)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return path


def load(path: str | Path) -> Learner:
    """Continue a saved learner, once. The file is renamed so that nobody continues it again."""
    path = Path(path)
    target = path.resolve()
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
        return _restore(path, *_read(path, used))
    except BaseException:
        used.rename(target)
        raise


def _restore(path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> Learner:
    if header["format"] > FORMAT:
        raise SaveFileError(
            f"{path} was written by dpbandits {header['version']}; this is {__version__}, please upgrade"
        )
    try:
        policy = Policy.from_dict(header["policy"])
        problem = Problem.from_dict(header["problem"])
        policy.check(problem)
        checks.integer(least=0, rounds=header["rounds"])
        public, secret = policy.begin(problem)
        _fill(public, "public", arrays)
        _fill(secret, "secret", arrays)
        streams = Streams.of(None)
        if header["streams"] is not None:
            for generator, state in zip(streams, header["streams"], strict=True):
                generator.bit_generator.state = state
    except (DPBanditsError, KeyError, TypeError, ValueError) as error:
        raise SaveFileError(f"{path} is not a learner this version can continue: {error}") from error
    seeded, compiled = header["streams"] is not None, policy.compiles
    learner = Learner(policy, problem, public, secret, streams, seeded=seeded, compiled=compiled)
    learner._rounds = header["rounds"]
    return learner


def _stream_states(learner: Learner) -> list[Any] | None:
    # Without a seed the noise comes fresh from the operating system, so nothing is kept to repeat.
    if not learner._seeded:
        return None
    return [generator.bit_generator.state for generator in learner._streams]


def _read(path: Path, claimed: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with np.load(io.BytesIO(claimed.read_bytes()), allow_pickle=False) as archive:
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
