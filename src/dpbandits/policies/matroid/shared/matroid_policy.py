"""What every policy for matroids states in the same words."""

from dataclasses import dataclass
from typing import ClassVar

from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.problems.matroids import MatroidBases

# Indices nearer than this keep the order they have, so that noise near 0 decides like none.
TIE = 1e-9


@dataclass(frozen=True, kw_only=True)
class MatroidPolicy(TrustedPolicy):
    """A policy that plays bases; neighbours replace all that one person rated in her round."""

    abstract: ClassVar[bool] = True
    problem_kind: ClassVar = MatroidBases
