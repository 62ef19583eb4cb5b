"""Policies for `MatroidBases`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.matroid.combinatorial_tree_ucb import CombinatorialTreeUCB
from dpbandits.policies.matroid.focused_matroid_ucb import FocusedMatroidUCB
from dpbandits.policies.matroid.matroid_klucb import MatroidKLUCB
from dpbandits.policies.matroid.matroid_thompson import MatroidThompson
from dpbandits.policies.matroid.matroid_ucb import MatroidUCB
from dpbandits.policies.matroid.private_matroid_thompson import PrivateMatroidThompson
from dpbandits.policies.matroid.private_matroid_ucb import PrivateMatroidUCB
from dpbandits.policies.matroid.uniform_bases import UniformBases

__all__ = [
    "CombinatorialTreeUCB",
    "FocusedMatroidUCB",
    "MatroidKLUCB",
    "MatroidThompson",
    "MatroidUCB",
    "PrivateMatroidThompson",
    "PrivateMatroidUCB",
    "UniformBases",
]
