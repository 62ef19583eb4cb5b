"""How verbs are compiled: linked together first, then optimised once.

By itself numba finishes every function that another one calls: it optimises it together with all that it
calls in turn, makes machine code of it, and begins again one call further out. Verbs call each other six
deep, so the innermost code was optimised six times over, and only the machine code of the outermost
function is ever run. Here the others stay as they are until they are linked into that one, which takes a
third of the time.

And machine code goes by names that hold a number, by which functions of one name are told apart. Numba
counts it up from 1 in every process. So two processes that each compiled one policy may have given both
the same names; a third, which loads both from the disk, would then play the second by the code of the
first. Here every process counts from a number of its own.
"""

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_notice: ContextVar[Callable[[], None] | None] = ContextVar("notice", default=None)
# Bases without stubs, and how numba divides its work: where a later version divides it otherwise,
# everything is compiled its way, which takes longer.
_Library: Any = JITCodeLibrary
_Compiler: Any = Compiler
_STEPS = "_optimize_final_module", "_finalize_final_module", "_finalize_specific"
_CAN_LINK_FIRST = all(hasattr(JITCodeLibrary, step) for step in _STEPS)
_Function: Any = FunctionIdentity


def _count_anew() -> None:
    """Of 2⁶² numbers, so that two processes hardly ever meet."""
    _Function._unique_ids = itertools.count(secrets.randbits(62))


_count_anew()
if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_count_anew)


@contextlib.contextmanager
def noticing(notice: Callable[[], None]) -> Iterator[None]:
    """Call `notice` before anything is compiled here; not for what is read from the disk."""
    before = _notice.set(notice)
    try:
        yield
    finally:
        _notice.reset(before)


class Whole(_Compiler):  # type: ignore[misc]
    """Compiles a function whose callees are only linked into it."""

    def compile_extra(self, func: Any) -> Any:
        """Numba holds its lock here, and has not found the function on the disk."""
        if (notice := _notice.get()) is not None:
            notice()
        if not _CAN_LINK_FIRST:
            return super().compile_extra(func)
        codegen = self.state.targetctx.codegen()
        self.state.library = _Finished(codegen, func.__qualname__)
        self.state.library.enable_object_caching()  # as numba does with one of its own making
        codegen._library_class = _Linked
        try:
            return super().compile_extra(func)
        finally:
            del codegen._library_class  # which uncovers numba's own, an attribute of the class


class _Finished(_Library):  # type: ignore[misc]
    """The code of the function that is run."""

    def _optimize_final_module(self) -> None:
        # Numba's first pass, to prune reference counts, would spoil loops here that it need not touch.
        passes = self._codegen._module_pass_manager()
        manager, *builder = passes if isinstance(passes, tuple) else (passes,)  # one alone in numba 0.61
        manager.run(self._final_module, *builder)


class _Linked(_Library):  # type: ignore[misc]
    """The code of a function that only compiled code calls: linked with what it calls, not finished."""

    def _optimize_final_module(self) -> None:
        if self._runs_by_itself():
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._runs_by_itself():
            super()._finalize_final_module()
            return
        # Numba asks at once for the address of the function's environment, a variable that the finished
        # code refers to by its name: so that alone is made.
        module = self._codegen._create_empty_module(self.name)
        for value in self._final_module.global_variables:
            if value.linkage == llvm.Linkage.common:
                pointer = ir.IntType(8).as_pointer()
                environment = ir.GlobalVariable(module, pointer, value.name)
                environment.linkage, environment.initializer = "common", ir.Constant(pointer, None)
        self._environments = llvm.parse_assembly(str(module))
        self._codegen._add_module(self._environments)
        self._finalize_specific()
        self._finalized = True

    def _runs_by_itself(self) -> bool:
        """Whether Python may call it (a verb calls somebody else's function), or it is recursive."""
        functions = (one.name for one in self._final_module.functions if not one.is_declaration)
        values = (one.name for one in self._final_module.global_variables)
        return any(name.startswith("_ZN7cpython") for name in functions) or any(
            name.startswith(".numba.unresolved") for name in values
        )
