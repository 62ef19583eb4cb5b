"""Columns of people as rows of numbers within a bound: by what is declared, never by what was seen.

A linear policy protects features by a bound on their length, `max_norm`. Raw columns (ages, countries)
must be brought to numbers within it first, and what that is done by is public: a range taken from the
data would give away its oldest person. So a `FeatureMap` is a recipe of *declarations*: ranges, lists of
categories, numbers of buckets. It has no `fit`.

**Within the bound by construction.** Each of the m declared columns (the intercept is one) becomes a
block of numbers of length at most 1: a number in [−1, 1], or a row with a single 1. All blocks are
multiplied by max_norm/√m, so no row is ever longer than `max_norm`, and none is shortened, which would
blur people who differ.

**What is outside.** A number beyond its range is cut off to the nearer end, one that is missing is what
`missing` says, or refused. `check` counts both. Those counts are raw data: they are for the operator, as
is the warning (`ShortenedFeatures`) when a tenth of the rows or more was cut off.

**A bound that suits them.** Noise is made for rows as long as `max_norm`, so a loose one costs as much
as a smaller budget: rows of length .3 under a bound of 1 have the noise of rows of length 1. There is a
warning (`LooseBound`) when nine of ten rows are shorter than half of it. Take it from public knowledge,
such as how rows are made; or from a sample of earlier people, by `private_norm`, inside a budget.
"""

from dpbandits.features.columns import Category, Column, Hashed, Number
from dpbandits.features.maps import Checked, CrossedFeatures, FeatureMap, Features
from dpbandits.features.norms import NormEstimate, private_norm
from dpbandits.features.tables import is_table

__all__ = [
    "Category",
    "Checked",
    "Column",
    "CrossedFeatures",
    "FeatureMap",
    "Features",
    "Hashed",
    "NormEstimate",
    "Number",
    "is_table",
    "private_norm",
]
