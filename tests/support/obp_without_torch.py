"""The Open Bandit Pipeline without torch, which it imports everywhere and which none of its estimators
for arrays needs: gigabytes that a test suite should not download. Where torch is installed, it is used.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from needed import missing


class _Anything(type):
    """A class that has every attribute, each of them another such class."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Names(ModuleType):
    """A module in which every name is some class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _StandIn(MetaPathFinder, Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torch" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Names(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def obp(part: str) -> Any:
    """A module of obp; skips the test where it is not installed."""
    if find_spec("obp") is None:
        missing("obp")
    stand_in = _StandIn()
    if find_spec("torch") is None:
        sys.meta_path.append(stand_in)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python says of its source where it is first compiled
            return importlib.import_module(f"obp.{part}")
    finally:
        if stand_in in sys.meta_path:
            sys.meta_path.remove(stand_in)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Names)]:
            del sys.modules[name]  # nobody else shall take it for torch
