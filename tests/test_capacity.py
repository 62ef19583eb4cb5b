"""docs/capacity.md: its arithmetic is run."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "capacity.md").read_text()


def test_the_arithmetic_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == shown


def test_the_text_uses_what_was_printed() -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    prose = PAGE.replace(shown, "")
    for figures in ("257", "770", "204 to 380", "33 to 57", "34 to 58", "21.6 GB", "75 MB"):
        assert all(number in shown for number in figures.split(" to ")) and figures in prose, figures
