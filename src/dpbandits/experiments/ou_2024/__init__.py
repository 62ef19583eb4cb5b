"""Ou, Avella Medina & Cummings 2024, "Thompson Sampling Itself is Differentially Private"."""

from dpbandits.experiments.figure import Figure
from dpbandits.experiments.ou_2024.analyses import Analyses
from dpbandits.experiments.ou_2024.other_algorithms import OtherAlgorithms
from dpbandits.experiments.ou_2024.privacy_curves import PrivacyCurves
from dpbandits.experiments.ou_2024.regret_bound import RegretBound
from dpbandits.experiments.ou_2024.regret_grid import BernoulliRegret, ExponentialRegret

FIGURES: tuple[Figure, ...] = (
    PrivacyCurves(),
    BernoulliRegret(),
    ExponentialRegret(),
    RegretBound(),
    Analyses(),
    OtherAlgorithms(),
)
