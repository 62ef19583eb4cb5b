r"""How strongly a noisy mean speaks against a higher one: a tail probability by a saddlepoint.

With n Bernoulli(q) rewards, Gaussian noise of variance σ² and m Laplace draws of scale b in their sum,
R = −ln(2·P[sum ≤ n·x]) is found from the largest exponent

    max_l  −l·n·x − n ln(1 − q + q e^−l) − l²σ²/2 + m ln(1 − l²b²),

which is concave in the tilt l, and the curvature there.
"""

import math

from numba.extending import register_jitable

_STEPS = 40  # Newton's take five or six; halving as many as this is precise enough
_STEEPEST = 512.0  # tilt where no Laplace noise bounds it


@register_jitable
def evidence_against(n: float, x: float, q: float, variance: float, b: float, m: float) -> float:
    """R for a released mean x of n rewards if the true mean is q; 0 where x ≥ q."""
    if x >= q:
        return 0.0
    low, high = 0.0, (1.0 - 1e-9) / b if b > 0.0 else _STEEPEST
    tilt = n * (q - x) / (n * q * (1.0 - q) + variance + 2.0 * m * b * b + 1e-12)
    if tilt >= high:
        tilt = 0.5 * high
    for _ in range(_STEPS):
        slope, width = _slope(tilt, n, x, q, variance, b, m)
        if slope > 0.0:
            low = tilt
        else:
            high = tilt
        step = tilt + slope / width if width > 0.0 else high
        if not low < step < high:
            step = 0.5 * (low + high)
        done = abs(step - tilt) <= 1e-6 * tilt
        tilt = step
        if done:
            break
    mass = 1.0 - q + q * math.exp(-tilt)
    # ln of e^{-tilt} is exact where mass underflows: q = 1.
    log_mass = math.log(mass) if mass > 1e-300 else -tilt
    reach = 1.0 - tilt * tilt * b * b
    exponent = -tilt * n * x - n * log_mass - 0.5 * tilt * tilt * variance + m * math.log(reach)
    _, width = _slope(tilt, n, x, q, variance, b, m)
    return exponent - log_erfcx(tilt * math.sqrt(width / 2.0))


@register_jitable(forceinline=True)
def _slope(
    tilt: float, n: float, x: float, q: float, variance: float, b: float, m: float
) -> tuple[float, float]:
    """The exponent's derivative in the tilt, and minus the second one."""
    falling = q * math.exp(-tilt)
    mass = 1.0 - q + falling
    share = falling / mass if mass > 1e-300 else 1.0
    reach = 1.0 - tilt * tilt * b * b
    slope = n * (share - x) - tilt * variance - 2.0 * m * tilt * b * b / reach
    width = n * share * (1.0 - share) + variance + 2.0 * m * b * b * (2.0 - reach) / (reach * reach)
    return slope, width


@register_jitable(forceinline=True)
def log_erfcx(x: float) -> float:
    """ln(e^{x²} erfc(x)) for x ≥ 0."""
    if x < 10.0:
        return x * x + math.log(math.erfc(x))
    u = 0.5 / (x * x)
    return math.log((1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u))) / (x * math.sqrt(math.pi)))
