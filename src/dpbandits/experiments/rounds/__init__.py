"""What rounds cost that are not one by one: several in flight, and people who return."""

from dpbandits.experiments.figure import Figure
from dpbandits.experiments.rounds.in_flight import InFlight
from dpbandits.experiments.rounds.returning import Returning

FIGURES: tuple[Figure, ...] = (InFlight(), Returning())
