"""Files that are there as a whole or not at all, whatever happens while they are written."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

DRAFT = ".part"
_OLD = 3600.0  # seconds; nobody writes on such a draft


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Somewhere to write it; afterwards it is on the disk, and in the place of an older one.

    Every draft has a name of its own: two processes may be writing the same file.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}{DRAFT}")
    try:
        yield draft
        _on_disk(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _on_disk(path.parent)


def forget_drafts(folder: Path, name: str = "*") -> None:
    """Remove what processes that were killed left of a file, or of any in the folder."""
    for draft in folder.glob(f".{name}.*{DRAFT}"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _OLD:
                draft.unlink()


def _on_disk(path: Path) -> None:
    """What the operating system holds back is lost when the machine stops."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
