"""Pages whose examples are run: what a block prints is shown below it, and what it draws is kept.

The blocks of a page are one program. Tests run pages by the same function, so that a page on the site is
one whose program ran to its end.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def program_of(page: str) -> str:
    """All examples of a page, as one program."""
    return "\n".join(BLOCK.findall(page))


def run_page(page: str, folder: Path) -> str:
    """The page with what its blocks print; pictures are left in `folder`, where the page finds them."""
    names: dict[str, object] = {"__name__": "__main__"}

    def shown(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), _within(folder):
            exec(compile(block[1], "<example>", "exec"), names)
        return block[0] + _output(printed.getvalue())

    return BLOCK.sub(shown, page)


def _output(printed: str) -> str:
    text = printed.rstrip()
    return f"\n:::{{container}} printed\n```text\n{text}\n```\n:::\n" if text else ""


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
