"""Pavlovic, Salgia & Zhao, "Differential privacy in kernelized contextual bandits …".

The paper has no experiment; these are the first. Worlds: contexts and actions evenly on [0, 1],
functions of norm 1 drawn from the kernel's space (`KernelWorld`), rewards ±1.
"""

from dpbandits.experiments.capri.bound import CapriBound
from dpbandits.experiments.capri.cost import CapriCost
from dpbandits.experiments.capri.misspecified import CapriMisspecified
from dpbandits.experiments.capri.regret import CapriRegret
from dpbandits.experiments.capri.scaling import CapriScaling
from dpbandits.experiments.figure import Figure

FIGURES: tuple[Figure, ...] = (
    CapriRegret(),
    CapriBound(),
    CapriScaling(),
    CapriMisspecified(),
    CapriCost(),
)
