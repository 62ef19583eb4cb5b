"""The verbs: methods of a state that run in plain Python and inside compiled code, bit for bit alike.

A policy's state is two named tuples of arrays, `public` and `secret`; a world is one; a matroid's is
one within a policy's. The verbs are methods of `public`, of the world, of the matroid:

================================================  ==================================================
``release(self, secret, noise)``                  alone carries data from secret to public
``select(self, context, explore)``                chooses; is not given `secret`
``observe(self, secret, context, action, reward)``  fills buffers, counts the round
``pause(self, secret, noise)``                    plain Python between compiled rounds; optional
``wait(self, action, change)``                    counts what is in flight (`flight.py`); optional
``lingers(self)``                                 the next decision takes long (`gpu.py`); optional
``rounds_ahead(self, action)``                    rounds that are this action's for certain; optional
``observe_many(self, secret, action, count, total)``  as many calls of `observe`; optional
``report(self, context, action, reward, noise)``  local model: the message a person sends
``receive(self, message)``                        local model: what the server makes of it
``offer(self, chance)``                           the round's context
``pay(self, context, action, chance)``            the reward
``settle(self, context, action, reward)``         (best mean, chosen mean, reward) as floats
``pay_many(self, action, count, chance)``         the sum of as many rewards, at once; optional
``clear(self)``                                   begin with the empty set
``join(self, item)``                              add an item if the set stays independent
``choose(self, features, explore)``               what a `select` that is shared leaves open
``restate(self)``                                 what a `release` that is shared leaves open
``index_of(self, arm, log_t)``                    what a `restate` that is shared leaves open
================================================  ==================================================

A policy has either `release` and `observe` (the learner is trusted with raw data) or `report` and
`receive` (only the person herself is). A context is None, a number, or a tuple of what the learner's
``select`` is given: an array is returned inside a tuple, since compiled verbs return no bare ones. So is
an action that is a set of items, and so are its rewards.

With the three verbs of many rounds a simulation may go in leaps (`leap_rounds` in `loop.py`). They speak
of one round at a time, of worlds without contexts, and of rewards that are 0 or 1.

Compiled code calls verbs as methods too: numba is told below to look each up on the class of the tuple.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from numba import types
from numba.extending import overload, overload_method

from dpbandits.engine.cache import OPTIONS

_SIGNATURES: dict[str, tuple[str, ...]] = {
    "release": ("self", "secret", "noise"),
    "select": ("self", "context", "explore"),
    "observe": ("self", "secret", "context", "action", "reward"),
    "pause": ("self", "secret", "noise"),
    "wait": ("self", "action", "change"),
    "lingers": ("self",),
    "rounds_ahead": ("self", "action"),
    "observe_many": ("self", "secret", "action", "count", "total"),
    "report": ("self", "context", "action", "reward", "noise"),
    "receive": ("self", "message"),
    "offer": ("self", "chance"),
    "pay": ("self", "context", "action", "chance"),
    "settle": ("self", "context", "action", "reward"),
    "pay_many": ("self", "action", "count", "chance"),
    "clear": ("self",),
    "join": ("self", "item"),
    "choose": ("self", "features", "explore"),
    "restate": ("self",),
    "index_of": ("self", "arm", "log_t"),
}
_WORLD = ("offer", "pay", "settle")
# A verb that LLVM finds too large to inline would cost 40 ns a call for its arguments alone, so it is
# told to. Those of matroids, and `restate`, are called rarely and are large.
INLINED: Any = {**OPTIONS, "forceinline": True}


@functools.cache
def check_verbs(state: type, *required: str) -> None:
    """Refuse a state whose verbs are missing, of both models, or of another signature."""
    name = f"{state.__module__}.{state.__qualname__}"
    for verb in required:
        if not hasattr(state, verb):
            raise TypeError(f"{name} has no verb {verb!r}")
    for verb, expected in _SIGNATURES.items():
        if (function := getattr(state, verb, None)) is None:
            continue
        if not inspect.isfunction(function) or tuple(inspect.signature(function).parameters) != expected:
            raise TypeError(f"expected {name} to have a method {verb}({', '.join(expected)})")
    if is_local(state) and (hasattr(state, "release") or hasattr(state, "observe")):
        # They would be left out without a word.
        raise TypeError(f"{name} has verbs of both models: report, and release or observe")


def check_policy_verbs(state: type) -> None:
    """The same for the public state of a policy, by its model."""
    check_verbs(state, *(("select", "receive") if is_local(state) else ("release", "select", "observe")))


def check_world_verbs(state: type) -> None:
    """The same for a world."""
    check_verbs(state, *_WORLD)


def knows_ahead(state: type) -> bool:
    """Whether a policy's state says how long it will play an action, and can learn from many rounds."""
    return hasattr(state, "rounds_ahead") and _stands_for(state, "observe_many", "observe")


def pays_many(state: type) -> bool:
    """Whether a world's state can pay many rewards at once, by the law of all its verbs of one round."""
    return all(_stands_for(state, "pay_many", one) for one in _WORLD)


def _stands_for(state: type, many: str, one: str) -> bool:
    """Whether the verb of many rounds is there, and no class overrides that of one alone."""
    writers = [
        next((i for i, k in enumerate(state.__mro__) if verb in vars(k)), -1) for verb in (many, one)
    ]
    return 0 <= writers[0] <= writers[1]


def is_local(state: type) -> bool:
    """Whether people randomise what they report themselves, so that nobody holds raw data."""
    return hasattr(state, "report")


def modules_of(state: type) -> set[str]:
    """The modules that the verbs of a state's class are written in."""
    verbs = (getattr(state, verb, None) for verb in _SIGNATURES)
    return {state.__module__, *(verb.__module__ for verb in verbs if verb is not None)}


def pause_if_due(public: Any, secret: Any, noise: Any, done: int) -> None:
    """Run the policy's `pause` if it asks for one at this round."""
    if asks_pause(public, done):
        public.pause(secret, noise)
        if asks_pause(public, done):
            name = f"{type(public).__module__}.{type(public).__qualname__}"
            raise RuntimeError(f"{name}.pause must move next_pause past {done}")


class Steps(NamedTuple):
    """The two halves of a round, in either model."""

    decide: Callable[..., Any]  # (public, secret, context, noise, explore) → action
    learn: Callable[..., Any]  # (public, secret, context, action, reward, noise) → message, or None


def steps_of(public: Any) -> Steps:
    """Those of a policy's state in plain Python."""
    check_policy_verbs(type(public))
    return (
        Steps(_decide_by_message, _learn_by_message) if is_local(type(public)) else Steps(decide, learn)
    )


def decide(public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
    """Release what is due, then choose."""
    public.release(secret, noise)
    return public.select(context, explore)


def learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> None:
    """Close a round."""
    public.observe(secret, context, action, reward)


def _decide_by_message(public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
    """In the local model there is nothing left to release."""
    return public.select(context, explore)


def _learn_by_message(
    public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any
) -> Any:
    """The message of the person, whose own noise it is."""
    message = public.report(context, action, reward, noise)
    public.receive(message)
    return message


# What follows is for compiled code only.


class Method(NamedTuple):
    """How compiled code finds a method of a named tuple."""

    kind: Any  # the tuples that have it, as numba's type
    name: str
    find: Any  # given the types of a call, the function that it is of
    options: Any  # for its compilation


METHODS: list[Method] = []  # all that were declared, for targets other than the processor


def declare_method(
    kind: Any, name: str, names: tuple[str, ...], lookup: Callable[[type], Any], options: Any
) -> None:
    """A call of this method on a named tuple is one of the function that its class is looked up for."""

    def find(self: Any, *given: Any) -> Any:
        return lookup(self.instance_class)

    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    typed: Any = find
    typed.__signature__ = inspect.Signature([inspect.Parameter(one, positional) for one in names])
    declare: Any = overload_method  # its stubs leave out what it hands on to `overload`
    declare(kind, name, strict=False, jit_options=options)(find)
    METHODS.append(Method(kind, name, find, options))


def _declare(verb: str, names: tuple[str, ...]) -> None:
    """Verbs are functions of the class itself."""
    options = OPTIONS if verb in ("clear", "join", "restate") else INLINED
    declare_method(types.BaseNamedTuple, verb, names, lambda state: getattr(state, verb, None), options)


for _verb, _names in _SIGNATURES.items():
    _declare(_verb, _names)


def _in_range(action: Any) -> Any:
    """An action that is not below 0, which would count from the end of an array.

    The compiler then knows it too, and a round of few nanoseconds takes a twentieth less.
    """
    raise NotImplementedError


@overload(_in_range, strict=False, jit_options=INLINED)
def _check_range(action: Any) -> Any:
    def check(action: Any) -> Any:
        if action < 0:
            raise IndexError("the policy chose an action below 0")
        return action

    return check if isinstance(action, types.Integer) else lambda action: action


@overload(decide, strict=False, jit_options=INLINED)
def _decide(public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
    if is_local(public.instance_class):
        return lambda public, secret, context, noise, explore: _in_range(public.select(context, explore))

    def decide(public: Any, secret: Any, context: Any, noise: Any, explore: Any) -> Any:
        public.release(secret, noise)
        return _in_range(public.select(context, explore))

    return decide


@overload(learn, strict=False, jit_options=INLINED)
def _learn(public: Any, secret: Any, context: Any, action: Any, reward: Any, noise: Any) -> Any:
    if is_local(public.instance_class):
        return lambda public, secret, context, action, reward, noise: public.receive(
            public.report(context, action, reward, noise)
        )
    return learn


def has_pauses(public: Any) -> bool:
    """Whether a policy's state asks for pauses at all."""
    return "next_pause" in public._fields


def asks_pause(public: Any, done: int) -> bool:
    """Whether the policy asks for its `pause` before the next round."""
    return has_pauses(public) and bool(done >= public.next_pause[0])


@overload(asks_pause, strict=False, jit_options=INLINED)
def _asks_pause(public: Any, done: int) -> Any:
    if "next_pause" in public.fields:
        return lambda public, done: done >= public.next_pause[0]
    return lambda public, done: False


def waits(public: Any, gather: Any) -> bool:
    """Whether the loop ends before a decision that takes long: only where runs gather for those."""
    return gather is not None and hasattr(public, "lingers") and bool(public.lingers())


@overload(waits, strict=False, jit_options=INLINED)
def _waits(public: Any, gather: Any) -> Any:
    if isinstance(gather, types.Boolean):
        return lambda public, gather: public.lingers()
    return lambda public, gather: False
