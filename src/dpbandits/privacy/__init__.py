"""What privacy means here: budgets, guarantees, accounting and calibration."""

from dpbandits.privacy.accounting import Filter, Odometer, compose
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpbandits.privacy.guarantees import Guarantee, Returning, Trust, Unit

__all__ = [
    "ApproxDP",
    "Budget",
    "Filter",
    "GaussianDP",
    "Guarantee",
    "NonPrivate",
    "Odometer",
    "PureDP",
    "RenyiDP",
    "Returning",
    "Trust",
    "Unit",
    "ZeroConcentratedDP",
    "compose",
]
