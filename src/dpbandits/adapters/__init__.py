"""Policies and worlds in the shapes that other libraries expect, one thin file for each of them.

A decision opens a round, a reward answers the round that asked for it, once, and a round that is not
answered counts without a reward. What another library does besides (an update nobody asked for, another
action than the one chosen, a second reward) is refused in a sentence. So guarantees are those of the
learner; where one rests on more, as on a log that is replayed (`replay=True`), its sentence says so.
What each of them loses or needs is in its docstring.
"""

import importlib
from typing import TYPE_CHECKING

from dpbandits.adapters.mabwiser import MAB, for_simulator
from dpbandits.adapters.obp import OBPPolicy, feedback_frame

if TYPE_CHECKING:
    from dpbandits.adapters.gymnasium import GymnasiumWorld
    from dpbandits.adapters.river import RiverPolicy
else:
    # Those that must be of the other library's own classes.
    _PLACES = {"GymnasiumWorld": "gymnasium", "RiverPolicy": "river"}

    def __getattr__(name: str) -> object:
        """Imported when it is asked for: not everybody has all of these libraries."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


__all__ = [
    "MAB",
    "GymnasiumWorld",
    "OBPPolicy",
    "RiverPolicy",
    "feedback_frame",
    "for_simulator",
]
