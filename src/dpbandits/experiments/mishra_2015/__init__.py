"""Mishra & Thakurta 2015, "(Nearly) optimal differentially private stochastic multi-arm bandits".

The data sets of its experiments are not in any text we have; its appendix D says how the algorithms were
run. Here they run on synthetic arms and contexts, as printed and as in appendix D.
"""

from dpbandits.experiments.figure import Figure
from dpbandits.experiments.mishra_2015.constants import TheoryConstants
from dpbandits.experiments.mishra_2015.contextual import ContextualRegret
from dpbandits.experiments.mishra_2015.thompson import TreeThompsonRegret
from dpbandits.experiments.mishra_2015.ucb import TreeUCBRegret

FIGURES: tuple[Figure, ...] = (
    TreeUCBRegret(),
    TreeThompsonRegret(),
    TheoryConstants(),
    ContextualRegret(),
)
