"""Rounds in flight: decided, and not closed yet.

A round is opened by a decision and closed, in the order of decisions, at the *start of a later one*:
when `in_flight` others were decided since, or when it has been open for the patience of a public clock.
Never when its reward arrives: then who answers quickly would move everybody's batches.

What waits is counted by the engine, not by policies: `wait` adds a decision to the public field
`waiting` of a state that has one, and takes it out again when its round closes. By action where actions
are public; in the joint model, where they are not, `waiting` has one entry for all.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine.verbs import INLINED


def wait(public: Any, action: Any, change: int) -> None:
    """Count a decision into those in flight (+1), or out of them (−1)."""
    if hasattr(public, "wait"):
        public.wait(action, change)
    elif hasattr(public, "waiting"):
        if public.waiting.size == 1:
            public.waiting[0] += change
        elif isinstance(action, tuple):
            for item in action[0]:
                public.waiting[item] += change
        else:
            public.waiting[action] += change


@overload(wait, strict=False, jit_options=INLINED)
def _wait(public: Any, action: Any, change: int) -> Any:
    if hasattr(public.instance_class, "wait"):
        return lambda public, action, change: public.wait(action, change)
    if "waiting" not in public.fields:
        return lambda public, action, change: None
    if isinstance(action, types.BaseTuple):

        def wait_for_items(public: Any, action: Any, change: int) -> None:
            for item in action[0]:
                public.waiting[item] += change

        return wait_for_items

    def wait_for_one(public: Any, action: Any, change: int) -> None:
        public.waiting[action if public.waiting.size > 1 else 0] += change

    return wait_for_one


class Flight(NamedTuple):
    """The rounds in flight of a simulated run: a ring with a place for each."""

    contexts: Any  # (W, 0) there is none; (W,) its number; (W, 1, d) the features of the action chosen
    actions: Any  # (W,) or, where an action is a set of items, (W, items)
    rewards: Any  # likewise
    sizes: NDArray[np.int64]  # (W,) the items of an action
    began: NDArray[np.float64]  # (W,) when it was decided
    due: NDArray[np.float64]  # (W,) when its reward arrives
    closed: NDArray[np.int64]  # (1,) rounds closed so far


def start_flight(places: int, features: int | None, items: int | None) -> Flight:
    """Nothing in flight. `features`: of a context, 0 where it is a number, None where there is none;
    `items`: the most of an action that is a set, None where it is a number.
    """
    checks.room("what is kept of rounds in flight", places * max(features or 1, items or 1))
    context: Any = np.zeros((places, 0))
    if features is not None:
        context = np.zeros((places, 1, features)) if features else np.zeros(places, np.int64)
    shape = (places,) if items is None else (places, items)
    return Flight(
        contexts=context,
        actions=np.zeros(shape, np.int64),
        rewards=np.zeros(shape),
        sizes=np.zeros(places, np.int64),
        began=np.zeros(places),
        due=np.zeros(places),
        closed=np.zeros(1, np.int64),
    )


def put_context(flight: Flight, place: int, context: Any, action: Any) -> None:
    """Keep of a context what `observe` will read."""
    if flight.contexts.ndim == 3:
        features = context[0]
        flight.contexts[place, 0] = features[action if len(features) > 1 else 0]
    elif flight.contexts.ndim == 1:
        flight.contexts[place] = context


def put_outcome(flight: Flight, place: int, action: Any, reward: Any) -> None:
    """Keep the action and its reward."""
    if isinstance(action, tuple):
        flight.sizes[place] = size = action[0].size
        flight.actions[place, :size], flight.rewards[place, :size] = action[0], reward[0][:size]
    else:
        flight.actions[place], flight.rewards[place] = action, reward


def lose_reward(flight: Flight, place: int) -> None:
    """It has not arrived."""
    flight.rewards[place] = math.nan


def kept_context(flight: Flight, place: int) -> Any:
    """As `observe` is given it."""
    if flight.contexts.ndim == 2:
        return None
    return (flight.contexts[place],) if flight.contexts.ndim == 3 else int(flight.contexts[place])


def kept_action(flight: Flight, place: int) -> Any:
    """As `observe` is given it."""
    if flight.actions.ndim == 2:
        return (flight.actions[place, : flight.sizes[place]],)
    return int(flight.actions[place])


def kept_reward(flight: Flight, place: int) -> Any:
    """As `observe` is given it."""
    if flight.rewards.ndim == 2:
        return (flight.rewards[place, : flight.sizes[place]],)
    return float(flight.rewards[place])


# The same for compiled code, by the types of the arrays.


def _is_features(flight: Any) -> bool:
    return bool(flight.types[0].ndim == 3)


def _is_set(flight: Any) -> bool:
    return bool(flight.types[1].ndim == 2)


@overload(put_context, strict=False, jit_options=INLINED)
def _put_context(flight: Any, place: int, context: Any, action: Any) -> Any:
    if _is_features(flight):

        def put_chosen_row(flight: Any, place: int, context: Any, action: Any) -> None:
            row, features = flight.contexts[place, 0], context[0]
            chosen = action if features.shape[0] > 1 else 0
            for axis in range(row.size):
                row[axis] = features[chosen, axis]

        return put_chosen_row
    if flight.types[0].ndim == 1:

        def put_number(flight: Any, place: int, context: Any, action: Any) -> None:
            flight.contexts[place] = context

        return put_number
    return lambda flight, place, context, action: None


@overload(put_outcome, strict=False, jit_options=INLINED)
def _put_outcome(flight: Any, place: int, action: Any, reward: Any) -> Any:
    if _is_set(flight):

        def put_items(flight: Any, place: int, action: Any, reward: Any) -> None:
            flight.sizes[place] = action[0].size
            for index in range(action[0].size):
                flight.actions[place, index] = action[0][index]
                flight.rewards[place, index] = reward[0][index]

        return put_items

    def put_number(flight: Any, place: int, action: Any, reward: Any) -> None:
        flight.actions[place] = action
        flight.rewards[place] = reward

    return put_number


@overload(lose_reward, strict=False, jit_options=INLINED)
def _lose_reward(flight: Any, place: int) -> Any:
    if _is_set(flight):

        def lose_items(flight: Any, place: int) -> None:
            for index in range(flight.sizes[place]):
                flight.rewards[place, index] = math.nan

        return lose_items

    def lose_number(flight: Any, place: int) -> None:
        flight.rewards[place] = math.nan

    return lose_number


@overload(kept_context, strict=False, jit_options=INLINED)
def _kept_context(flight: Any, place: int) -> Any:
    if _is_features(flight):
        return lambda flight, place: (flight.contexts[place],)
    if flight.types[0].ndim == 1:
        return lambda flight, place: flight.contexts[place]
    return lambda flight, place: None


@overload(kept_action, strict=False, jit_options=INLINED)
def _kept_action(flight: Any, place: int) -> Any:
    if _is_set(flight):
        return lambda flight, place: (flight.actions[place, : flight.sizes[place]],)
    return lambda flight, place: flight.actions[place]


@overload(kept_reward, strict=False, jit_options=INLINED)
def _kept_reward(flight: Any, place: int) -> Any:
    if _is_set(flight):
        return lambda flight, place: (flight.rewards[place, : flight.sizes[place]],)
    return lambda flight, place: flight.rewards[place]
