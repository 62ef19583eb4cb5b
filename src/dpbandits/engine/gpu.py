"""The loop on a GPU: one thread a run, all runs of a wave side by side.

`run_rounds` and the verbs are compiled for the GPU as they are. The states of all runs are stacked, with
the run as the *last* axis: neighbouring threads then read neighbouring numbers, which is two to three
times faster than one state after the other. A thread takes its part as `array[..., run]`. Arrays that no
verb writes to (`FROM_RECIPE`, see `state.py`) are there once, for all runs.

Each run draws from three generators of its own (`philox.py`), which live in the registers of its thread.
So a run's numbers depend on the seed and on its number alone, and not on who plays beside it.

Needs the extra `cuda`: this module is imported where it is used.
"""

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numba
import numba.cuda
import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from dpbandits.engine.cache import named_by_key, own_cache
from dpbandits.engine.loop import Ledger, modules_outside, run_rounds
from dpbandits.engine.philox import CHANGING, FIXED, SIZE, Philox, set_philox, start_philox
from dpbandits.engine.state import ANYTHING, FROM_RECIPE, classes, limits_of
from dpbandits.engine.verbs import INLINED, METHODS

# Without stubs, or with stubs that leave out what is used here.
cuda: Any = numba.cuda
_config: Any = numba.config
_named_tuple: Any = types.BaseNamedTuple
_BLOCK = 128  # threads; changes no result
# A thread's, where long decisions are apart from the rounds between them (`_play`). Twice as many fit
# beside each other as with all the registers they ask for; what is spilled is of the long decisions.
_REGISTERS = 128
_STREAMS = 3
_ROOM = 0.8  # of the free memory, for a wave
_PATIENCE = 5  # a run waits for the others of its warp for up to 2⁻⁵ of the rounds it has played
_MOST = 1 << 20  # runs of a wave: four times what the largest GPU plays at once


class Shared(NamedTuple):
    """An array that all runs read, and none writes to."""

    table: Any


def part(state: Any, run: int) -> Any:
    """What one run sees of stacked states: its own arrays, the shared ones, and numbers."""
    if isinstance(state, Shared):
        return state.table
    if hasattr(state, "_fields"):
        return type(state)(*(part(value, run) for value in state))
    return state[..., run] if hasattr(state, "ndim") else state


@overload(part, strict=False, jit_options=INLINED)
def _part(state: Any, run: int) -> Any:
    """The same, written out for the type: device functions return no bare array."""
    names: dict[str, Any] = {}
    exec(f"def part(state, run): return {_expression(state, 'state', names)}", names)
    return names["part"]


def _expression(kind: Any, path: str, names: dict[str, Any]) -> str:
    """How the part is written; `names` is filled with the classes that it calls."""
    if isinstance(kind, types.Array):
        return f"{path}[..., run]"
    if not isinstance(kind, _named_tuple) or not kind.fields:
        return path
    if kind.instance_class is Shared:
        return f"{path}.table"
    name = f"class_{len(names)}"
    names[name] = kind.instance_class
    fields = zip(kind.fields, kind.types, strict=True)
    return f"{name}({', '.join(_expression(one, f'{path}.{field}', names) for field, one in fields)})"


def _play(
    public: Any, secret: Any, world: Any, streams: Any, ledger: Any, stop: int, patience: int
) -> None:
    """Play rounds until `stop`; before a decision that takes long, the threads of a warp gather.

    They move in step: while one of them thinks, all others stand still. So one that `lingers` lets the
    others play on, until they do too or have run out of patience; then they think side by side. A run's
    numbers are its own, whatever round the others are in.
    """
    done, before = ledger.done[0], -1
    while before < done < stop:  # a run that broke off does not go on
        run_rounds(public, secret, world, streams, ledger, done + 1)
        end = min(stop, done + (done >> patience))
        run_rounds(public, secret, world, streams, ledger, end, True)
        before, done = done, ledger.done[0]


@overload(_play, strict=False, jit_options=INLINED)
def _play_compiled(
    public: Any, secret: Any, world: Any, streams: Any, ledger: Any, stop: int, patience: int
) -> Any:
    if hasattr(public.instance_class, "lingers"):
        return _play
    return lambda public, secret, world, streams, ledger, stop, patience: run_rounds(
        public, secret, world, streams, ledger, stop
    )


def play_one(
    public: Any,
    secret: Any,
    world: Any,
    ledger: Any,
    words: Any,
    runs: Any,
    first_key: int,
    second_key: int,
    patience: int,
    stop: int,
) -> None:
    """What a thread does: load its generators, play rounds until `stop`, keep the generators.

    What never changes about a generator is made anew, so that the compiler sees what it has in common
    with the others; of the rest it makes registers.
    """
    run = cuda.grid(1)
    if run < runs.size:
        key, number = (first_key, second_key), runs[run]
        noise = cuda.local.array(SIZE, types.int64)
        explore = cuda.local.array(SIZE, types.int64)
        chance = cuda.local.array(SIZE, types.int64)
        set_philox(noise, key, number, 0)
        set_philox(explore, key, number, 1)
        set_philox(chance, key, number, 2)
        for i in range(CHANGING):
            noise[FIXED + i] = words[0, i, run]
            explore[FIXED + i] = words[1, i, run]
            chance[FIXED + i] = words[2, i, run]
        streams = (Philox(noise), Philox(explore), Philox(chance))
        own = part(ledger, run)
        _play(part(public, run), part(secret, run), part(world, run), streams, own, stop, patience)
        for i in range(CHANGING):
            words[0, i, run] = noise[FIXED + i]
            words[1, i, run] = explore[FIXED + i]
            words[2, i, run] = chance[FIXED + i]


def _repeat(values: Any, stacked: Any) -> None:
    """Every run begins with the same values."""
    run = cuda.grid(1)
    if run < stacked.shape[1]:
        for i in range(values.size):
            stacked[i, run] = values[i]


def device_name() -> str | None:
    """The GPU's name; None where there is none."""
    if not cuda.is_available():
        return None
    name = getattr(cuda.get_current_device(), "name", "simulator")
    return name.decode() if isinstance(name, bytes) else str(name)


class Wave:
    """The runs that are played side by side."""

    def __init__(
        self,
        public: Any,
        secret: Any,
        world: Any,
        ledger: Ledger,
        key: tuple[int, int],
        runs: NDArray[np.int64],
        *,
        block: int = _BLOCK,
        registers: int | None = None,
        patience: int = _PATIENCE,
    ) -> None:
        """`block` threads at a time, each with at most so many registers: nothing changes a result."""
        self.size, self._block = runs.size, block
        self._states = tuple(_stacked(state, runs.size) for state in (public, secret, world))
        self._ledger = Ledger(
            Shared(cuda.to_device(ledger.grid)),  # type: ignore[arg-type]
            *(_repeated(array, runs.size) for array in ledger[1:]),
        )
        streams = [start_philox(key, 0, stream).words[FIXED:] for stream in range(_STREAMS)]
        self._streams = _repeated(np.stack(streams), runs.size), cuda.to_device(runs), *key, patience
        if registers is None and hasattr(public, "lingers"):
            registers = _REGISTERS
        combination = tuple(one for state in (public, world) for one in classes(state))
        self._play = _kernel(play_one, combination, registers)

    def prepare(self, notice: Callable[[], None] = lambda: None) -> None:
        """Have its code ready: from this process, from the disk, or, after a notice, compiled."""
        with _noticing(notice):
            self.play(0)

    def play(self, stop: int) -> int:
        """Play all runs until `stop`; the number of rounds that all have played, which is less where a
        run broke off: the GPU has no errors that could say why.
        """
        arguments = *self._states, self._ledger, *self._streams, stop
        _launch(self._play, self.size, self._block, *arguments)
        return int(self._ledger.done.copy_to_host()[0].min())  # type: ignore[attr-defined]

    def curves(self) -> NDArray[np.float64]:
        """(runs, points, 3)."""
        stacked: NDArray[np.float64] = self._ledger.curves.copy_to_host()  # type: ignore[attr-defined]
        return np.ascontiguousarray(np.moveaxis(stacked, -1, 0))


def waves(runs: NDArray[np.int64], *states: Any) -> Iterator[NDArray[np.int64]]:
    """The runs in as few parts as the memory of the GPU allows."""
    each = (_STREAMS * CHANGING + 1) * 8 + sum(bytes_of_run(state) for state in states)
    free = cuda.current_context().get_memory_info().free
    size = int(max(1, min(_MOST, runs.size, _ROOM * free / each)))
    for first in range(0, runs.size, size):
        yield runs[first : first + size]


def bytes_of_run(state: Any) -> int:
    """What one more run takes of the GPU's memory."""
    own = (value for value, shared in _fields(state) if not shared)
    return sum(
        bytes_of_run(one) if hasattr(one, "_fields") else getattr(one, "nbytes", 0) for one in own
    )


def _fields(state: Any) -> Iterator[tuple[Any, bool]]:
    """Each value of a state, and whether it is an array that all runs share."""
    limits = limits_of(state)
    for name, value in zip(state._fields, state, strict=True):
        yield value, isinstance(value, np.ndarray) and limits.get(name, ANYTHING) is FROM_RECIPE


def _stacked(state: Any, runs: int) -> Any:
    """A state as many times as there are runs, on the GPU."""
    found = []
    for value, shared in _fields(state):
        if shared:
            value = Shared(cuda.to_device(np.ascontiguousarray(value)))
        elif isinstance(value, np.ndarray):
            value = _repeated(value, runs)
        elif hasattr(value, "_fields"):
            value = _stacked(value, runs)
        found.append(value)
    return type(state)(*found)


def _repeated(array: Any, runs: int) -> Any:
    stacked = cuda.device_array((*array.shape, runs), array.dtype)
    if array.size:
        flat = cuda.to_device(np.ascontiguousarray(array).reshape(-1))
        _launch(_kernel(_repeat), runs, _BLOCK, flat, stacked.reshape(array.size, runs))
    return stacked


def _launch(kernel: Any, runs: int, block: int, *arguments: Any) -> None:
    with warnings.catch_warnings():  # that few runs leave most of a GPU idle
        warnings.filterwarnings("ignore", message="Grid size")
        kernel[-(-runs // block), block](*arguments)


_LOCK = threading.Lock()


def _kernel(function: Any, states: tuple[type, ...] = (), registers: int | None = None) -> Any:
    """A kernel of its own for each combination of classes, as in `loop.py`."""
    with _LOCK:
        return _compile(function, states, registers)


@functools.cache
def _compile(function: Any, states: tuple[type, ...], registers: int | None) -> Any:
    _declare_methods()
    if _config.ENABLE_CUDASIM:
        return cuda.jit(function)
    settings: Any = import_module("numba.cuda.core.config")
    # A kernel on the disk is not asked how many registers it was made for: each number has a folder.
    with own_cache(modules_outside(states), settings, f"registers-{registers}") as usable:
        return named_by_key(cuda.jit(cache=usable, max_registers=registers)(function))


@contextlib.contextmanager
def _noticing(notice: Callable[[], None]) -> Iterator[None]:
    """Call `notice` before anything is compiled here; not for what is read from the disk."""
    if _config.ENABLE_CUDASIM:
        yield
        return
    event: Any = import_module("numba.cuda.core.event")
    once = functools.cache(notice)
    methods = {"on_start": lambda self, pass_: once(), "on_end": lambda self, pass_: None}
    with event.install_listener("numba-cuda:run_pass", type("Notice", (event.Listener,), methods)()):
        yield


@functools.cache
def _declare_methods() -> None:
    """Numba's CUDA target finds functions that were declared for the processor, but no methods."""
    if _config.ENABLE_CUDASIM:  # runs them in plain Python
        return
    extending: Any = import_module("numba.cuda.extending")
    for one in METHODS:
        extending.overload_method(one.kind, one.name, strict=False, jit_options=one.options)(one.find)
