"""Parts of one simulation, put together again."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.errors import InvalidInput
from dpbandits.simulation.header import run_numbers

if TYPE_CHECKING:
    from dpbandits.simulation.trace import Trace

_OF_A_PART = {"runs", "first_run", "policies", "guarantees"}


def merged_parts(
    parts: "list[Trace]",
) -> tuple[dict[str, Any], NDArray[np.int64], dict[str, NDArray[np.float64]], dict[str, float]]:
    """Header, rounds, curves and seconds of the whole."""
    if not parts:
        raise InvalidInput("expected at least one trace to merge")
    shared = _shared(parts[0])
    for part in parts:
        its = _shared(part)
        differs = sorted(key for key in shared | its if shared.get(key) != its.get(key))
        if differs:
            raise InvalidInput(f"these traces are not of one simulation: {differs[0]} differs")
    by_label: dict[str, list[Trace]] = {}
    for part in sorted(parts, key=lambda part: run_numbers(part.header).start):
        for label in part.policies:
            by_label.setdefault(label, []).append(part)
    labels = list(dict.fromkeys(label for part in parts for label in part.policies))
    runs = {label: _joined_runs(label, by_label[label]) for label in labels}
    numbers = runs[labels[0]]
    for label in labels:
        if runs[label] != numbers:
            raise InvalidInput(f"{labels[0]} has runs {_shown(numbers)}, {label} {_shown(runs[label])}")
    header = parts[0].header | {"runs": len(numbers), "policies": {}, "guarantees": {}}
    header.pop("first_run", None)
    header |= {"first_run": numbers.start} if numbers.start else {}
    for label in labels:
        for key in ("policies", "guarantees"):
            header[key][label] = by_label[label][0].header[key][label]
    curves = {x: np.concatenate([part.curves[x] for part in by_label[x]]) for x in labels}
    seconds = {x: sum(part.seconds[x] for part in by_label[x]) for x in labels}
    return header, parts[0].rounds, curves, seconds


def _shared(part: "Trace") -> dict[str, Any]:
    return {key: value for key, value in part.header.items() if key not in _OF_A_PART}


def _joined_runs(label: str, parts: "list[Trace]") -> range:
    """The runs of parts that follow each other; refused are gaps, runs given twice, another recipe."""
    numbers = [run_numbers(part.header) for part in parts]
    for one, other in itertools.pairwise(numbers):
        if other.start != one.stop:
            what = "twice" if other.start < one.stop else "not at all"
            first, last = sorted((one.stop, other.start))
            raise InvalidInput(f"runs {_shown(range(first, last))} of {label} are there {what}")
    if any(part.header["policies"][label] != parts[0].header["policies"][label] for part in parts):
        raise InvalidInput(f"{label} is another policy in another part")
    return range(numbers[0].start, numbers[-1].stop)


def _shown(numbers: range) -> str:
    return f"{numbers.start} to {numbers.stop - 1}"
