"""Shariff & Sheffet 2018, "Differentially Private Contextual Linear Bandits"."""

from dpbandits.experiments.figure import Figure
from dpbandits.experiments.shariff_2018.against_shift import RegretAgainstShift
from dpbandits.experiments.shariff_2018.by_dimension import RegretAgainstDimension, RegretByDimension
from dpbandits.experiments.shariff_2018.decision_set import DecisionSet
from dpbandits.experiments.shariff_2018.over_time import RegretOverTime

FIGURES: tuple[Figure, ...] = (
    DecisionSet(),
    RegretByDimension(),
    RegretAgainstDimension(),
    RegretOverTime(),
    RegretAgainstShift(),
)
