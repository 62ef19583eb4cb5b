"""Sweeps as written in TOML, in the notation of the command line."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from dpbandits import checks
from dpbandits.cli.worlds import environment
from dpbandits.errors import InvalidInput
from dpbandits.simulation.replicate import Device
from dpbandits.sweeps import Plan

_NEEDED = ("policies", "environments", "rounds")
_KEYS = (*_NEEDED, "budgets", "runs", "seed", "points", "block", "results")
_FOR_LOGS = (
    "a plan cannot name one; in Python, "
    'use dpb.sweep(environments={"log": dpb.worlds.LoggedArms.read(…)}, …)'
)


class WrittenPlan(NamedTuple):
    """What a file asks for, and the folder that it wants the results in."""

    plan: Plan
    results: Path


def read_plan(path: Path, device: Device, *, leaps: bool = False) -> WrittenPlan:
    """The plan of a TOML file; paths in it are seen from where the file is."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from None
    for key in record:
        checks.known(f"key of a sweep ({path})", key, _KEYS)
    for key in _NEEDED:
        if key not in record:
            raise InvalidInput(f"{path} does not say its {key}")
    results = record.pop("results", f"{path.stem}-results")
    if not isinstance(results, str):
        raise InvalidInput(f"expected results to be a folder, got {checks.shown(results)}")
    worlds = _texts("environments", record.pop("environments"))
    record["environments"] = (
        {label: environment(text, for_logs=_FOR_LOGS) for label, text in worlds.items()}
        if isinstance(worlds, dict)
        else [environment(text, for_logs=_FOR_LOGS) for text in worlds]
    )
    for key in ("policies", "budgets"):
        if key in record:
            record[key] = _texts(key, record[key])
    for key in ("rounds", "runs", "points", "block"):
        if key in record:
            record[key] = _whole(record[key])
    return WrittenPlan(Plan.of(**record, device=device, leaps=leaps), path.parent / results)


def _texts(key: str, value: Any) -> list[str] | dict[str, str]:
    """A text, a list of them, or a table of them by label."""
    value = [value] if isinstance(value, str) else value
    texts = value.values() if isinstance(value, dict) and key != "budgets" else value
    if isinstance(value, list | dict) and all(isinstance(text, str) for text in texts):
        return value
    raise InvalidInput(f"expected {key} as a list of texts, got {checks.shown(value)}")


def _whole(value: Any) -> Any:
    """1e5 is a whole number, though TOML has it as another."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
