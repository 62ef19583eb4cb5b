"""Numbers and counts as people write them."""

import math
import re

# What remains of sums that are zero, apart from their rounding.
ROUNDING = 1e-9


def number(value: float) -> str:
    """Four digits, thousands apart: 1,234 and 0.5678 and 1e-6; what is only rounding is 0."""
    if math.isnan(value):
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else short_exponent(f"{value:.4g}")


def short_exponent(text: str) -> str:
    """`1e-06`, as Python prints it, as people type it: `1e-6`.

    >>> short_exponent("(1, 1e-06)"), short_exponent("1.5e+10")
    ('(1, 1e-6)', '1.5e10')
    """
    return re.sub(r"e(-?)\+?0*(?=\d)", r"e\1", text)


def counted(count: int, noun: str) -> str:
    """How many of something.

    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
