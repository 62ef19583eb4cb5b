"""Kernels for a GPU that is not there: compiled to PTX, for a compute capability that is given."""

from types import SimpleNamespace
from typing import Any

import numba
import numba.cuda
import numpy as np
import pytest

from dpbandits import Policy
from dpbandits.engine import gpu
from dpbandits.engine.loop import Ledger
from dpbandits.engine.philox import CHANGING
from dpbandits.worlds import Environment

CAPABILITY = 9, 0
_cuda: Any = numba.cuda
_typeof: Any = numba.typeof


def ptx(patch: pytest.MonkeyPatch, policy: Policy, environment: Environment, **options: Any) -> str:
    """What a GPU would be given to play this policy on this world."""
    from numba.cuda import dispatcher

    # Callees are compiled for the device at hand.
    patch.setattr(
        dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=CAPABILITY)
    )
    gpu._declare_methods()
    code, _ = _cuda.compile_ptx(gpu.play_one, signature(policy, environment), cc=CAPABILITY, **options)
    return str(code)


def signature(policy: Policy, environment: Environment) -> tuple[Any, ...]:
    """The types of what a kernel is called with."""
    ledger = Ledger.on(np.arange(1, 100))
    states = *policy.begin(environment.problem(1000)), environment.small_world()
    arguments = *map(_of_two_runs, (*states, ledger)), np.zeros((3, CHANGING, 2), np.int64)
    return tuple(_typeof(one) for one in (*arguments, np.zeros(2, np.int64), 1, 2, 5, 1000))


def _of_two_runs(state: Any) -> Any:
    """Arrays as on a GPU. Writing to a shared one is refused by the compiler."""
    found = []
    for value, shared in gpu._fields(state):
        if shared:
            table = value.copy()
            table.flags.writeable = False
            value = gpu.Shared(table)
        elif isinstance(value, np.ndarray):
            value = np.stack([value, value], axis=-1)
        elif hasattr(value, "_fields"):
            value = _of_two_runs(value)
        found.append(value)
    return type(state)(*found)
