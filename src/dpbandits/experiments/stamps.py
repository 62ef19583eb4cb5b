"""Stamps: a hash of the code that determines a figure's numbers, to find sections older than it.

That code is the figure's own files, the files of its policies and worlds, and what these import from the
folders below, and so on. Engine and simulation are not among it: tests hold them to the same bits; nor
are the verbs of leaps, which tests hold to the same law. Nor is what only learners at work run, nor are
comments, docstrings and the shape of the text.
"""

import ast
import hashlib
import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from dpbandits.experiments.figure import Figure, Scale
from dpbandits.policies import Policy
from dpbandits.worlds import Environment

OLDER = " · older than its code"  # what is said of a section whose stamp is not that of today
_FOLDERS = ("policies", "sums", "mechanisms", "problems", "worlds", "privacy")
_FOLLOWED = tuple(f"dpbandits.{folder}" for folder in _FOLDERS)
_FIGURES = "dpbandits.experiments"
_AT_WORK = {
    f"dpbandits.policies.{name}"
    for name in ("learner", "saving", "tickets", "messages", "released", "rounds", "people", "changes")
}

_LEAPS = {"rounds_ahead", "observe_many", "pay_many"}


def code_stamp(figure: Figure) -> str | None:
    """The hash of today; None where the figure's data, which say what it plays, are not there."""
    return None if figure.missing() is not None else _hash_of(modules_of(figure))


def stamp_of(*recipes: Policy | Environment) -> str:
    """The same of policies and worlds alone, for what is measured apart from any figure."""
    kinds = {kind for recipe in recipes for kind in type(recipe).__mro__}
    return _hash_of(_modules_from((kind.__module__ for kind in kinds), ""))


def _hash_of(modules: set[str]) -> str:
    found = hashlib.sha256()
    for module in sorted(modules):
        found.update(f"{module} {_written(module)}\0".encode())
    return found.hexdigest()[:12]


def modules_of(figure: Figure) -> set[str]:
    """The names of all modules that determine its numbers."""
    played = [s for scale in Scale for s in figure.simulations(scale).values()]
    recipes = [recipe for one in played for recipe in (*one.policies.values(), one.environment)]
    kinds = {kind for recipe in recipes for kind in type(recipe).__mro__} | set(type(figure).__mro__)
    base = Figure.__module__  # what all figures share is no figure's own
    begin = (kind.__module__ for kind in kinds if kind.__module__ != base)
    return _modules_from(begin, type(figure).__module__)


def _modules_from(begin: Iterable[str], own: str) -> set[str]:
    """These, what they import, and so on, of what is followed."""
    waiting = [module for module in begin if _follows(module, own)]
    found: set[str] = set()
    while waiting:
        if (module := waiting.pop()) not in found:
            found.add(module)
            waiting += [one for one in _imported(module) if _follows(one, own)]
    return found


def _follows(module: str, own: str) -> bool:
    """Whether a module is one of the folders, or belongs to the paper of a figure's own module."""
    if module in _AT_WORK:
        return False
    paper = own.rsplit(".", 1)[0]  # the folder of a paper of many figures; otherwise its only file
    of_paper = module.startswith(f"{paper}.") if paper != _FIGURES else module == own
    return of_paper or module in _FOLLOWED or module.startswith(tuple(f"{x}." for x in _FOLLOWED))


@cache
def _imported(module: str) -> frozenset[str]:
    """Where the names that a module imports are defined: not the lists of folders they came by."""
    found = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dpbandits"):
            found |= {_home(node.module, alias.name) for alias in node.names}
    return frozenset(found)


def _home(module: str, name: str) -> str:
    """The module in which what is imported was written; of a plain value, the one it came from."""
    value: Any = getattr(importlib.import_module(module), name, None)
    if value is None or isinstance(value, type(ast)):
        return f"{module}.{name}"
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) and home.startswith("dpbandits") else module


@cache
def _tree(module: str) -> ast.Module:
    file = importlib.import_module(module).__file__
    return ast.parse(Path(str(file)).read_text(encoding="utf-8"))


@cache
def _written(module: str) -> str:
    return meaning(_tree(module))


def meaning(tree: ast.AST) -> str:
    """A program without docstrings and comments, written the same by every version of Python."""
    return _dumped(tree)


def _dumped(node: Any) -> str:
    if isinstance(node, list):
        return f"[{','.join(map(_dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list) and _is_documented(node):
            value = value[1:]
        if name == "body" and isinstance(value, list):
            value = [one for one in value if getattr(one, "name", None) not in _LEAPS]
        if value not in (None, []) and name != "kind":  # other versions may lack what is empty
            parts.append(f"{name}={_dumped(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _is_documented(node: ast.AST) -> bool:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None
