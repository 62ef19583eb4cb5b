"""Generators as compiled code takes them at once: by the addresses of their functions.

Handing a generator itself to compiled code takes 7 to 14 µs, most of what a decision of a compiled
learner would cost: numba looks its addresses up in Python, every time. Here they are looked up once.
Draws are the same, bit for bit: it is the same generator, and moves on in the same way.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.cgutils import create_struct_proxy
from numba.extending import intrinsic

from dpbandits.engine.draws import compile_draws


class Handed(NamedTuple):
    """Where a generator keeps its state, and where its functions are. It must outlive this."""

    state: int
    next_uint64: int
    next_uint32: int
    next_double: int


def handed(generator: Any) -> Any:
    """A generator by its addresses, also where it is the source of another; what is none, as it is."""
    if type(generator) is np.random.Generator:
        found: Any = generator.bit_generator.ctypes
        functions = found.next_uint64, found.next_uint32, found.next_double
        return Handed(found.state.value, *(_address(function) for function in functions))
    if isinstance(generator, tuple) and hasattr(generator, "generator"):
        return generator._replace(generator=handed(generator.generator))  # type: ignore[attr-defined]
    return generator


class Hands:
    """The generators that a learner decides with, and their addresses."""

    def __init__(self) -> None:
        self.empty()

    def empty(self) -> None:
        """Hold none: whoever has its state knows what a generator drew."""
        self._given: tuple[Any, Any] = None, None
        self._handed: tuple[Any, Any] = None, None

    def decide(self, code: Any, public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
        """Call the compiled function; addresses are looked up again where generators are others."""
        if self._given[0] is not noise or self._given[1] is not explore:
            self._given, self._handed = (noise, explore), (handed(noise), handed(explore))
        return code(public, secret, context, *self._handed)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _from_addresses(context: Any, given: Any) -> Any:
    """What numba makes of the generator itself."""
    proxy: Any = create_struct_proxy  # it has no types

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = proxy(signature.return_type)(context, builder)
        bits = proxy(types.NumPyRandomBitGeneratorType("bit_generator"))(context, builder)
        for place, name in enumerate(Handed._fields):
            value = builder.extract_value(arguments[0], place)
            setattr(bits, name if name == "state" else f"fnptr_{name}", value)
        whole.bit_generator = bits._getvalue()
        return whole._getvalue()

    return types.npy_rng(given), build


_generator: Any = intrinsic(_from_addresses)

compile_draws(
    Handed,
    random=lambda self: _generator(self).random(),
    standard_normal=lambda self: _generator(self).standard_normal(),
    normal=lambda self, loc, scale: _generator(self).normal(loc, scale),
    laplace=lambda self, loc, scale: _generator(self).laplace(loc, scale),
    binomial=lambda self, n, p: _generator(self).binomial(n, p),
    chisquare=lambda self, df: _generator(self).chisquare(df),
)
