"""Where compiled code is kept, so that it starts at once in the next process.

Numba's own cache does not notice an edit in the file of a function that is *called*. So each state of
the sources has a folder of its own, named by their hash.

And it numbers its files as they come: of two processes that compile for different policies at the same
time, both may take the same number, and from then on one policy is played by the code of the other. So
here a file is named by what it is for, and written before it is listed.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from dpbandits.engine.compiler import Whole

_config: Any = numba.config  # its stubs do not list the settings
# The default error model halves the speed of vector code. Without reference counting (`_nrt`) a state
# of many arrays costs nothing to pass around: 6 ns a round instead of 230. In return compiled code
# cannot allocate: scratch arrays are part of the state.
OPTIONS: Any = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
_PACKAGE = Path(__file__).parents[1]
_KEPT = 8


def cache_home() -> Path:
    """The folder for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dpbandits"


# Declaring our functions changes a global setting of numba for a moment; two threads at once would
# leave one of them with numba's default cache, which goes stale.
_LOCK = threading.RLock()


def compiled(*functions: Callable[..., Any], outside: tuple[str, ...] = ()) -> list[Callable[..., Any]]:
    """The functions as compiled ones, kept on disk where there is room; `outside` as for the hash."""
    with _LOCK, own_cache(outside) as usable:
        jit = numba.njit(cache=usable, nogil=True, pipeline_class=Whole, **OPTIONS)
        return [named_by_key(jit(function)) for function in functions]


def named_by_key(dispatcher: Any) -> Any:
    """The same, with files on the disk that no other process can take for something else."""
    kept = getattr(dispatcher._cache, "_cache_file", None)  # none where nothing is kept
    if kept is not None:
        kept.save = functools.partial(_save, kept)
    return dispatcher


def _save(kept: Any, key: Any, data: Any) -> None:
    digest = int(hashlib.sha256(kept._dump(key)).hexdigest()[:16], 16)
    name = kept._data_name(digest)
    kept._save_data(name, data)
    # Another process may list its own at the same moment; what is not listed is compiled again.
    kept._save_index({**kept._load_index(), key: name})


@contextlib.contextmanager
def own_cache(outside: tuple[str, ...], settings: Any = _config, part: str = "") -> Iterator[bool]:
    """Point numba's cache at our own folder while our functions are declared, and only then.

    `settings` are those of the compiler; `part` names a folder within, for what numba would confuse.
    """
    before = settings.CACHE_DIR
    try:
        folder = (Path(before) if before else cache_home()) / f"dpbandits-{_digest(outside)}"
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        _forget_old(folder)
    except OSError:
        # No writable home, or a verb typed into a notebook, which has no source file to hash.
        yield False
        return
    settings.CACHE_DIR = str(folder / part)
    try:
        yield True
    finally:
        settings.CACHE_DIR = before


def _digest(outside: tuple[str, ...]) -> str:
    files = sorted(_PACKAGE.rglob("*.py"))
    files += [Path(getattr(sys.modules[module], "__file__", None) or "") for module in outside]
    # Names too: what numba keeps on disk refers to classes by the module they were in.
    digest = hashlib.sha256(" ".join(outside).encode())
    for file in files:
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _forget_old(folder: Path) -> None:
    """Each edit makes a new folder: keep the few used last."""
    known = sorted(folder.parent.glob("dpbandits-*"), key=lambda path: path.stat().st_mtime)
    for path in known[:-_KEPT]:
        shutil.rmtree(path, ignore_errors=True)
