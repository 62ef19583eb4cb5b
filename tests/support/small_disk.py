"""A disk so small that it is soon full."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A folder that holds few bytes; `fill` takes all that are left, `free` gives them back."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self) -> None:
        handle = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                os.write(handle, bytes(4096))
        except OSError:  # full
            return
        finally:
            os.close(handle)

    def free(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Mounted in memory, which takes an administrator; otherwise the test is skipped, or fails in CI."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        text = "a small disk cannot be mounted here: run the tests as root"
        if os.environ.get("DPBANDITS_REQUIRE_SERVICES") == "1":
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
