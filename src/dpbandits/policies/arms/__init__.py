"""Policies for `Arms`. To add one: copy the nearest file, add its name here. Nothing else."""

from dpbandits.policies.arms.adaptive_klucb import AdaptiveKLUCB
from dpbandits.policies.arms.adaptive_ucb import AdaptiveUCB
from dpbandits.policies.arms.best_arm_race import BestArmRace
from dpbandits.policies.arms.beta_thompson import BetaThompson
from dpbandits.policies.arms.exp3 import Exp3
from dpbandits.policies.arms.gaussian_thompson import GaussianThompson
from dpbandits.policies.arms.hybrid_thompson import HybridThompson
from dpbandits.policies.arms.klucb import KLUCB
from dpbandits.policies.arms.lazy_beta_thompson import LazyBetaThompson
from dpbandits.policies.arms.lazy_thompson import LazyThompson
from dpbandits.policies.arms.lazy_ucb import LazyUCB
from dpbandits.policies.arms.local_ucb import LocalUCB
from dpbandits.policies.arms.modified_thompson import ModifiedThompson
from dpbandits.policies.arms.noise_aware_imed import NoiseAwareIMED
from dpbandits.policies.arms.private_exp3 import PrivateExp3
from dpbandits.policies.arms.private_imed import PrivateIMED
from dpbandits.policies.arms.private_klucb import PrivateKLUCB
from dpbandits.policies.arms.sequential_halving import SequentialHalving
from dpbandits.policies.arms.successive_elimination import SuccessiveElimination
from dpbandits.policies.arms.thompson_ucb import ThompsonUCB
from dpbandits.policies.arms.tree_thompson import TreeThompson
from dpbandits.policies.arms.tree_ucb import TreeUCB
from dpbandits.policies.arms.ucb1 import UCB1
from dpbandits.policies.arms.uniform_arms import UniformArms

__all__ = [
    "KLUCB",
    "UCB1",
    "AdaptiveKLUCB",
    "AdaptiveUCB",
    "BestArmRace",
    "BetaThompson",
    "Exp3",
    "GaussianThompson",
    "HybridThompson",
    "LazyBetaThompson",
    "LazyThompson",
    "LazyUCB",
    "LocalUCB",
    "ModifiedThompson",
    "NoiseAwareIMED",
    "PrivateExp3",
    "PrivateIMED",
    "PrivateKLUCB",
    "SequentialHalving",
    "SuccessiveElimination",
    "ThompsonUCB",
    "TreeThompson",
    "TreeUCB",
    "UniformArms",
]
