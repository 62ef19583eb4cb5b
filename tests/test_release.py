"""What a release is made of agrees with itself."""

import re
import tomllib
from pathlib import Path

from dpbandits import __version__
from dpbandits.extras import PACKAGES

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", __version__]


def test_extras_bring_what_is_imported_with_them() -> None:
    extras = PROJECT["optional-dependencies"]
    everywhere = [name for name in PACKAGES if name != "cuda"]  # which is of no use without a GPU
    assert extras["all"] == [f"dpbandits[{','.join(everywhere)}]"]
    called = {"sklearn": "scikit_learn"}  # where a package is installed by another name
    for name, package in PACKAGES.items():
        installed = called.get(package, package)
        assert any(line.replace("-", "_").startswith(installed) for line in extras[name])


def test_every_dependency_is_pinned_by_name() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    pinned = {pin.partition("==")[0].lower().replace("_", "-") for pin in pins}
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]
    names = {re.match(r"[\w-]+", line)[0] for line in wanted} - {"dpbandits"}  # type: ignore[index]
    assert names <= pinned
