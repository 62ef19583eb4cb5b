"""Chandak, Hu & Hegde, "Differentially private algorithms for efficient online matroid optimization"."""

from dpbandits.experiments.chandak.films import FilmsThompson, FilmsUCB
from dpbandits.experiments.chandak.films_recommended import FilmsRecommended
from dpbandits.experiments.chandak.growth_rate import GrowthRate
from dpbandits.experiments.chandak.price_of_privacy import PriceOfPrivacy
from dpbandits.experiments.chandak.privacy_levels import PrivacyLevels
from dpbandits.experiments.chandak.synthetic import SyntheticThompson, SyntheticUCB
from dpbandits.experiments.figure import Figure

FIGURES: tuple[Figure, ...] = (
    SyntheticUCB(),
    PrivacyLevels(),
    FilmsUCB(),
    SyntheticThompson(),
    FilmsThompson(),
    GrowthRate(),
    PriceOfPrivacy(),
    FilmsRecommended(),
)
