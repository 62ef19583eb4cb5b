"""What privacy costs at the click rates of the Open Bandit Dataset, from the sample that obp brings."""

from dpbandits.experiments.figure import Figure
from dpbandits.experiments.obd.budgets import Budgets
from dpbandits.experiments.obd.horizons import Horizons

FIGURES: tuple[Figure, ...] = (Budgets(), Horizons())
