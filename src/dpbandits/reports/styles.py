"""One look for each policy, the same in every picture: colour and marker by its name, stroke by privacy.

Solid has a budget, dashed has none: a twin is drawn as its policy, dashed. What is no policy (a budget,
a dimension) is told apart by its place in the picture, by `line_style`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from dpbandits.policies import FAMILIES, Policy, policy_kinds
from dpbandits.privacy.budgets import NonPrivate

Style = dict[str, Any]
# Told apart by people who do not see red and green alike (Okabe & Ito), on light pages and on dark ones.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^DvPX"
STYLES = ("-", "--", ":", "-.")
# A policy keeps its place here for good. Those not listed follow, in the order of their family.
_PLACES = {
    "arms": (
        "noise-aware-imed",
        "modified-thompson",
        "lazy-thompson",
        "private-klucb",
        "lazy-ucb",
        "private-imed",
        "uniform-arms",
        "successive-elimination",
        "tree-ucb",
        "hybrid-thompson",
        "adaptive-klucb",
        "adaptive-ucb",
        "lazy-beta-thompson",
        "ucb1",
        "klucb",
        "beta-thompson",
        "thompson-ucb",
        "tree-thompson",
        "local-ucb",
        "best-arm-race",
        "private-exp3",
        "sequential-halving",
    ),
    "linear": (
        "randomized-lin-ucb",
        "tree-lin-ucb",
        "batched-lin-ucb",
        "batched-lin-thompson",
        "factorized-lin-ucb",
        "local-lin-ucb",
        "uniform-actions",
        "lin-thompson",
        "tree-contextual-ucb",
        "tree-contextual-thompson",
    ),
    "matroid": (
        "focused-matroid-ucb",
        "private-matroid-ucb",
        "private-matroid-thompson",
        "matroid-ucb",
        "combinatorial-tree-ucb",
        "matroid-thompson",
        "uniform-bases",
        "matroid-klucb",
    ),
    "kernel": (
        "kernel-thompson",
        "capri",
        "local-kernel-thompson",
        "local-capri",
        "kernel-ucb",
        "uniform-kernel-actions",
    ),
}
# Twins that have a name of their own, and whose they are.
_TWIN_OF = {
    "gaussian-thompson": "modified-thompson",
    "lin-ucb": "tree-lin-ucb",
    "exp3": "private-exp3",
}
# Several of one name in a picture: options told apart by which half of a marker is filled (an empty one
# has no budget) and how lines are broken.
_VARIANTS: tuple[Style, ...] = (
    {},
    {"fillstyle": "top", "linestyle": "-."},
    {"fillstyle": "left", "linestyle": ":"},
    {"fillstyle": "right", "linestyle": (0, (6, 1, 1, 1, 1, 1))},
)


class _Drawn(NamedTuple):
    """What a look depends on."""

    policy: str
    has_budget: bool


def line_style(index: int) -> Style:
    """The colour and stroke of the index-th curve, of those that are no policies."""
    stroke = STYLES[(index // len(COLOURS)) % len(STYLES)]
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": stroke}


def policy_style(name: str, *, has_budget: bool = True) -> Style:
    """The colour, marker and stroke of a policy by its name; the same in every picture."""
    place = _places()[_TWIN_OF.get(name, name)]
    marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]
    stroke = STYLES[0] if has_budget else STYLES[1]
    return {"color": COLOURS[place % len(COLOURS)], "marker": marker, "linestyle": stroke}


def styles(
    labels: Iterable[str], policies: Mapping[str, Policy] = MappingProxyType({})
) -> dict[str, Style]:
    """By label, how to draw each in one picture.

    A label is that of a policy if `policies` says so or if it begins with a policy's name:
    "lazy-ucb, 1-DP", "lazy-ucb (twin)". Several of one policy (its options differ) have its marker, and
    its colour unless they are more than two and others are left. If there is no other policy, or there
    are too many of one, all are told apart by place.
    """
    named = {label: _drawn(label, policies.get(label)) for label in labels}
    known = [one for one in named.values() if one is not None]
    most = max((known.count(one) for one in known), default=0)
    if most > len(_VARIANTS) or (most > 1 and len({one.policy for one in known}) == 1):
        return {label: line_style(index) for index, label in enumerate(named)}
    taken = {policy_style(one.policy)["color"] for one in known}
    free = [colour for colour in COLOURS if colour not in taken]
    found: dict[str, Style] = {}
    seen: list[_Drawn | None] = []
    for label, one in named.items():
        again = seen.count(one)
        seen.append(one)
        if one is None:
            cycle, place = divmod(again, len(free or COLOURS))
            colour = COLOURS.index((free or COLOURS)[place])
            found[label] = line_style(colour + len(COLOURS) * cycle)
            continue
        found[label] = policy_style(one.policy, has_budget=one.has_budget) | _VARIANTS[again]
        if again and most > 2 and None not in named.values() and free:
            found[label]["color"] = free.pop(0)
    return found


@cache
def _places() -> dict[str, int]:
    """By policy, its place in its family; families do not meet in one picture."""
    found: dict[str, int] = {}
    for family in FAMILIES:
        listed = _PLACES.get(family.__name__.rsplit(".", 1)[1], ())
        names = [getattr(family, kind).name() for kind in family.__all__]
        new = [name for name in names if name not in listed and name not in _TWIN_OF]
        found |= {name: place for place, name in enumerate((*listed, *new))}
    return found


def _drawn(label: str, policy: Policy | None) -> _Drawn | None:
    """Which policy a label is about; None if about none that is known by name."""
    if policy is not None:
        name, has_budget = policy.name(), not isinstance(policy.privacy, NonPrivate)
        return _Drawn(name, has_budget) if name in policy_kinds() else None
    begins = re.match(r"[a-z0-9-]+", label)
    kind = policy_kinds().get(begins.group()) if begins else None
    if begins is None or kind is None:
        return None
    return _Drawn(begins.group(), not (kind.takes_no_budget() or label.endswith(" (twin)")))
