"""The verbs of policies and worlds, and how each finds the function written for a state's class.

A policy's state is two named tuples of arrays, `public` and `secret`; a world is one. Each policy or
environment file defines plain functions of these names over its own classes and marks them ``@verb``:

==================================================  ================================================
``release(public, secret, noise)``                  alone carries data from secret to public
``select(public, context, explore)``                chooses; is not given `secret`
``observe(public, secret, context, action, reward)``  fills buffers, counts the round
``pause(public, secret, noise)``                    plain Python between compiled rounds; optional
``report(public, context, action, reward, noise)``  local model: the message a person sends
``receive(public, message)``                        local model: what the server makes of it
``offer(world, chance)``                            the round's context
``pay(world, context, action, chance)``             the reward
``settle(world, context, action, reward)``          (best mean, chosen mean, reward) as floats
``clear(matroid)``                                  begin with the empty set
``join(matroid, item)``                             add an item if the set stays independent
==================================================  ================================================

The last two are for the state of a matroid, which policies hold within theirs. A policy has either
`release` and `observe` (the learner is trusted with raw data) or `report` and `receive` (only the person
herself is). The same functions run in plain Python and inside compiled code,
with bit-identical results. A context is None, a number, or a tuple of what the learner's ``select`` is
given: an array is returned inside a tuple, since compiled verbs do not return bare ones. So is an action
that is a set of items, and so are its rewards.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])
_SIGNATURES: dict[str, tuple[str, ...]] = {
    "release": ("public", "secret", "noise"),
    "select": ("public", "context", "explore"),
    "observe": ("public", "secret", "context", "action", "reward"),
    "pause": ("public", "secret", "noise"),
    "report": ("public", "context", "action", "reward", "noise"),
    "receive": ("public", "message"),
    "offer": ("world", "chance"),
    "pay": ("world", "context", "action", "chance"),
    "settle": ("world", "context", "action", "reward"),
    "clear": ("matroid",),
    "join": ("matroid", "item"),
}
_VERBS: dict[tuple[str, type], Callable[..., Any]] = {}
# The default error model halves the speed of vector code. Without reference counting (`_nrt`) a state
# of many arrays costs nothing to pass around: 6 ns a round instead of 230. In return verbs cannot
# allocate: scratch arrays are part of the state. A verb that LLVM finds too large to inline would cost
# 40 ns a call for its arguments alone, so it is told to.
_OPTIONS: Any = {"error_model": "numpy", "_nrt": False, "forceinline": True}


def verb(function: F) -> F:
    """Register a function as a verb for the class of its first argument, or each class of a union.

    The verb is the function's name up to the first underscore, so that one file may hold a
    ``pay_bernoulli`` and a ``pay_exponential``.
    """
    name = function.__name__.split("_")[0]
    given = tuple(inspect.signature(function).parameters)
    if _SIGNATURES.get(name) != given:
        raise TypeError(f"no verb has the signature {name}{given}; known are {_SIGNATURES}")
    state = typing.get_type_hints(function).get(given[0])
    for owner in typing.get_args(state) or (state,):
        if not (isinstance(owner, type) and issubclass(owner, tuple) and hasattr(owner, "_fields")):
            raise TypeError(f"annotate the first argument of {name} with its NamedTuple class")
        known = _VERBS.get((name, owner), function)
        if (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
            # One policy must not change what another one does.
            raise TypeError(f"{owner.__qualname__} has a verb {name} already, in {known.__module__}")
        _VERBS[name, owner] = function
    return function


def implementation(name: str, state: type) -> Callable[..., Any]:
    """The function written for the verb and the state's class, or for the class it extends."""
    for owner in state.__mro__:
        if (name, owner) in _VERBS:
            return _VERBS[name, owner]
    raise TypeError(f"{state.__module__}.{state.__qualname__} has no verb {name!r}")


class Steps(NamedTuple):
    """What a round asks of a policy, in either model, as plain functions."""

    release: Callable[..., None]
    select: Callable[..., Any]
    learn: Callable[..., None]  # (public, secret, context, action, reward, noise)


def steps_of(state: type) -> Steps:
    """The steps of a policy's state: its verbs, those of the local model joined to one learner's."""
    if is_local(state):
        report, receive = implementation("report", state), implementation("receive", state)
        if any((name, owner) in _VERBS for name in ("release", "observe") for owner in state.__mro__):
            # They would be left out without a word.
            raise TypeError(
                f"{state.__qualname__} has verbs of both models: report, and release or observe"
            )

        def learn_locally(
            public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any
        ) -> None:
            receive(public, report(public, context, action, reward, noise))

        return Steps(_release_nothing, implementation("select", state), learn_locally)
    release, select, observe = (implementation(n, state) for n in ("release", "select", "observe"))

    def learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> None:
        observe(public, secret, context, action, reward)

    return Steps(release, select, learn)


def is_local(state: type) -> bool:
    """Whether people randomise what they report themselves, so that nobody holds raw data."""
    return any(("report", owner) in _VERBS for owner in state.__mro__)


def _release_nothing(public: Any, secret: Any, noise: Any) -> None:
    """In the local model there is nothing left to release."""


def modules_of(state: type, *required: str) -> set[str]:
    """The modules of the verbs of a state's class, which must include the required ones."""
    for name in required:
        implementation(name, state)
    return {verb.__module__ for (_, owner), verb in _VERBS.items() if issubclass(state, owner)}


def is_paused(public: Any, done: int) -> bool:
    """Whether the policy asks for its `pause` before the next round."""
    return "next_pause" in public._fields and bool(done >= public.next_pause[0])


# Rarely called and large, so not inlined.
_CALLED: Any = {"error_model": "numpy", "_nrt": False}


def clear(matroid: Any) -> None:
    """Begin with the empty set."""
    implementation("clear", type(matroid))(matroid)


def join(matroid: Any, item: int) -> bool:
    """Add an item to the set if that stays independent; says whether."""
    return bool(implementation("join", type(matroid))(matroid, item))


@overload(clear, strict=False, jit_options=_CALLED)
def _clear(matroid: Any) -> Any:
    return implementation("clear", matroid.instance_class)


@overload(join, strict=False, jit_options=_CALLED)
def _join(matroid: Any, item: int) -> Any:
    return implementation("join", matroid.instance_class)


# What follows exists for the compiled loop only: numba resolves each call below, when it compiles
# the loop for some state, to the function registered for that state's class. (`strict` would compare
# annotations too; `verb` has checked the names.)


def release(public: Any, secret: Any, noise: Any) -> None: ...
def select(public: Any, context: Any, explore: Any) -> Any: ...
def observe(public: Any, secret: Any, context: Any, action: Any, reward: Any) -> None: ...
def report(public: Any, context: Any, action: Any, reward: Any, noise: Any) -> Any: ...
def receive(public: Any, message: Any) -> None: ...
def learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> None: ...
def offer(world: Any, chance: Any) -> Any: ...
def pay(world: Any, context: Any, action: Any, chance: Any) -> Any: ...
def settle(world: Any, context: Any, action: Any, reward: Any) -> Any: ...
def asks_pause(public: Any, done: int) -> Any: ...


@overload(release, strict=False, jit_options=_OPTIONS)
def _release(public: Any, secret: Any, noise: Any) -> Any:
    return steps_of(public.instance_class).release


@overload(select, strict=False, jit_options=_OPTIONS)
def _select(public: Any, context: Any, explore: Any) -> Any:
    return implementation("select", public.instance_class)


@overload(observe, strict=False, jit_options=_OPTIONS)
def _observe(public: Any, secret: Any, context: Any, action: Any, reward: Any) -> Any:
    return implementation("observe", public.instance_class)


@overload(report, strict=False, jit_options=_OPTIONS)
def _report(public: Any, context: Any, action: Any, reward: Any, noise: Any) -> Any:
    return implementation("report", public.instance_class)


@overload(receive, strict=False, jit_options=_OPTIONS)
def _receive(public: Any, message: Any) -> Any:
    return implementation("receive", public.instance_class)


@overload(learn, strict=False, jit_options=_OPTIONS)
def _learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> Any:
    if is_local(public.instance_class):
        return lambda public, secret, context, action, reward, noise: receive(
            public, report(public, context, action, reward, noise)
        )
    return lambda public, secret, context, action, reward, noise: observe(
        public, secret, context, action, reward
    )


@overload(offer, strict=False, jit_options=_OPTIONS)
def _offer(world: Any, chance: Any) -> Any:
    return implementation("offer", world.instance_class)


@overload(pay, strict=False, jit_options=_OPTIONS)
def _pay(world: Any, context: Any, action: Any, chance: Any) -> Any:
    return implementation("pay", world.instance_class)


@overload(settle, strict=False, jit_options=_OPTIONS)
def _settle(world: Any, context: Any, action: Any, reward: Any) -> Any:
    return implementation("settle", world.instance_class)


@overload(asks_pause, strict=False, jit_options=_OPTIONS)
def _asks_pause(public: Any, done: int) -> Any:
    if "next_pause" in public.fields:
        return lambda public, done: done >= public.next_pause[0]
    return lambda public, done: False
