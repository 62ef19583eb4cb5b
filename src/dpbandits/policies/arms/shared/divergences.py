"""Divergences between Bernoulli means, with and without privacy, and the confidence bounds they give.

With z between x and y, d_ε(x, y) = min_z ε|z − x| + kl(z, y) is the rate at which n Bernoulli(y) rewards
plus Laplace(1/ε) noise look like mean x (Azize et al. 2025). For x < y the minimum is at
z = y e^−ε / (1 − y + y e^−ε), or at x where that is smaller; so

    d_ε(x, y) = −εx − ln(1 − y + y e^−ε)   where x < z,      kl(x, y) otherwise.

All means are in [0, 1]; ε may be infinite.
"""

import math

from numba.extending import register_jitable

# A Newton step of this share of the distance to both ends leaves an error of its square.
_CLOSE = 1e-8


@register_jitable(forceinline=True)
def negative_entropy(x: float) -> float:
    """The part of kl(x, ·) without the second mean: x ln x + (1−x) ln(1−x)."""
    value = 0.0
    if x > 0.0:
        value += x * math.log(x)
    if x < 1.0:
        value += (1.0 - x) * math.log(1.0 - x)
    return value


@register_jitable(forceinline=True)
def bernoulli_kl(x: float, y: float) -> float:
    """The Kullback–Leibler divergence x ln(x/y) + (1−x) ln((1−x)/(1−y)); infinite where y excludes x."""
    value = 0.0
    if x > 0.0:
        if y <= 0.0:
            return math.inf
        value += x * math.log(x / y)
    if x < 1.0:
        if y >= 1.0:
            return math.inf
        value += (1.0 - x) * math.log((1.0 - x) / (1.0 - y))
    return max(value, 0.0)


@register_jitable(forceinline=True)
def kl_upper(x: float, level: float) -> float:
    """The largest q with kl(x, q) ≤ level."""
    if x >= 1.0 or level <= 0.0:
        return x
    return kl_upper_from(x, negative_entropy(x), level)


@register_jitable
def kl_upper_from(x: float, entropy: float, level: float) -> float:
    """The same for x < 1 and level > 0, where the negative entropy of x is known.

    Newton's method: kl(x, ·) is convex right of x, so after one step the iterates fall to the root.
    """
    # By Pinsker's inequality; or, where that says nothing, from dropping −x ln q ≥ 0.
    limit = x + math.sqrt(0.5 * level)
    if limit >= 1.0:
        limit = 1.0 - math.exp((entropy - level) / (1.0 - x))
        if limit >= 1.0:
            return 1.0
    q = x + math.sqrt(2.0 * x * (1.0 - x) * level) + (2.0 / 3.0) * (1.0 - 2.0 * x) * level
    if q <= x or q > limit:
        q = limit
    for step in range(60):
        excess = entropy - x * math.log(q) - (1.0 - x) * math.log(1.0 - q) - level
        following = min(limit, q - excess * q * (1.0 - q) / (q - x))
        # Rounding can stop the fall before the steps are small, or where x is all but reached.
        if following <= x or (step > 0 and following >= q):
            return q
        if abs(following - q) <= _CLOSE * (q - x) * (1.0 - q):
            return following
        q = following
    return q


@register_jitable(forceinline=True)
def private_kl(x: float, y: float, epsilon: float) -> float:
    """d_ε(x, y)."""
    if x == y:
        return 0.0
    # Seen from the other end, a mean below x is one above 1 − x.
    near, high, low = (x, y, 1.0 - y) if x < y else (1.0 - x, 1.0 - y, y)
    if low <= 0.0:
        return epsilon * abs(y - x)
    shrunk = high * math.exp(-epsilon)
    mass = low + shrunk
    if near * mass >= shrunk:
        return bernoulli_kl(x, y)
    if near > 0.5:
        # Here ε·near and ln(mass) nearly cancel; divided by e^−ε both are small.
        far = 1.0 - x if x < y else x
        return epsilon * far - math.log1p(math.exp(epsilon + math.log(low)) - low)
    log_mass = math.log(mass) if mass < 0.5 else math.log1p(high * math.expm1(-epsilon))
    return -epsilon * near - log_mass


@register_jitable(forceinline=True)
def private_kl_upper(x: float, level: float, epsilon: float) -> float:
    """The largest q with d_ε(x, q) ≤ level."""
    if x >= 1.0 or level <= 0.0:
        return x
    # Up to `edge` the divergence is kl, beyond it the other formula, which has an inverse.
    edge = x / (x + (1.0 - x) * math.exp(-epsilon)) if x > 0.0 else 0.0
    if math.isinf(epsilon) or bernoulli_kl(x, edge) >= level:
        return kl_upper(x, level)
    return min(1.0, math.expm1(-level - epsilon * x) / math.expm1(-epsilon))
