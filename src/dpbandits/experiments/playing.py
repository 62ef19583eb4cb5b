"""The simulations of a figure as units of a sweep, and the traces made of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpbandits.errors import InvalidInput
from dpbandits.experiments.figure import Simulation
from dpbandits.policies import Policy
from dpbandits.simulation import Trace
from dpbandits.simulation.gpu import about_gpu, check_gpu_can
from dpbandits.simulation.header import describe
from dpbandits.simulation.progress import RoundsBar
from dpbandits.simulation.replicate import Device
from dpbandits.simulation.run import problem_of
from dpbandits.sweeps.engines import engine_for
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.playing import played_units
from dpbandits.sweeps.unit import Unit, blocks, code_of

Named = dict[str, Unit]  # by the hash that names each


def play(
    simulations: Mapping[str, Simulation],
    folder: Path,
    label: str,
    *,
    device: Device = "cpu",
    threads: int | None = None,
    on: Any = None,
    progress: bool = True,
) -> dict[str, Trace]:
    """The traces of all simulations; units of any of them are played side by side."""
    if not simulations:
        return {}
    units = {name: _units(simulation, device) for name, simulation in simulations.items()}
    wanted: Named = {
        key: unit for by in units.values() for one in by.values() for key, unit in one.items()
    }
    total = sum(unit.total_rounds for unit in wanted.values())
    found: dict[str, Trace] = {}
    with RoundsBar(total, label, show=progress) as bar:
        for place in ("cuda", "cpu"):
            here = {key: unit for key, unit in wanted.items() if unit.device == place}
            if here:
                engine = engine_for(place, None if place == "cuda" else threads, on)
                found |= played_units(here, Folder(folder), engine, bar)
    return {name: _trace(simulations[name], units[name], found) for name in simulations}


def _units(s: Simulation, device: Device) -> dict[str, Named]:
    """Those of each policy, by its label; on a GPU where that can play it."""
    found: dict[str, Named] = {}
    for label, policy in s.policies.items():
        place: Device = "cuda" if device == "cuda" and _gpu_can(s, policy) else "cpu"
        found[label] = {}
        for runs in blocks(s.rounds, s.runs, s.points, place, leaps=s.leaps):
            unit = Unit(
                policy=policy,
                environment=s.environment,
                rounds=s.rounds,
                runs=runs,
                seed=s.seed,
                points=s.points,
                timing=s.timing,
                rounds_per_person=s.rounds_per_person,
                device=place,
                leaps=s.leaps,
                code=code_of(policy, s.environment),
            )
            found[label][unit.name()] = unit
    return found


def _gpu_can(s: Simulation, policy: Policy) -> bool:
    if s.leaps:
        return False
    try:
        check_gpu_can(policy.name(), policy, problem_of(s.environment, s.rounds, s.rounds_per_person))
    except InvalidInput:
        return False
    return s.timing.is_one_at_a_time


def _trace(s: Simulation, units: dict[str, Named], found: Mapping[str, Trace]) -> Trace:
    """As if all policies had been simulated together."""
    parts = {label: [found[key] for key in named] for label, named in units.items()}
    on_cpu = [x for x, named in units.items() if next(iter(named.values())).device == "cpu"]
    made_by = {} if len(on_cpu) == len(units) else about_gpu()
    header = describe(
        dict(s.policies),
        s.environment,
        s.rounds,
        s.runs,
        s.seed,
        s.points,
        timing=None if s.timing.is_one_at_a_time else s.timing,
        rounds_per_person=s.rounds_per_person,
        leaps=s.leaps,
        made_by=made_by,
    )
    if made_by and on_cpu:
        header["on_cpu"] = on_cpu
    name = {label: policy.name() for label, policy in s.policies.items()}
    return Trace(
        header,
        next(iter(parts.values()))[0].rounds,
        {x: np.concatenate([part.curves[name[x]] for part in parts[x]]) for x in parts},
        {x: sum(part.seconds[name[x]] for part in parts[x]) for x in parts},
    )
