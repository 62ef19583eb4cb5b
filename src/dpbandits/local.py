"""The local model, in which people randomise their own answers: its policies and both sides."""

from dpbandits.policies.arms import (
    LocalUCB,
)
from dpbandits.policies.kernel import (
    LocalCapri,
    LocalKernelThompson,
)
from dpbandits.policies.linear import (
    LocalLinUCB,
)
from dpbandits.policies.local import (
    LocalPolicy,
    Person,
    Server,
)

__all__ = [
    "LocalCapri",
    "LocalKernelThompson",
    "LocalLinUCB",
    "LocalPolicy",
    "LocalUCB",
    "Person",
    "Server",
]
