"""The largest of several values, one by one; ties are broken by free randomness, never by raw data."""

from numba.extending import register_jitable

from dpbandits.engine import Chance


@register_jitable(forceinline=True)
def better(
    score: float, action: int, best: float, chosen: int, ties: int, width: float, explore: Chance
) -> tuple[float, int, int]:
    """The best score so far, its action and how many are as good, after one more.

    Scores nearer than `width` are ties. Of all that tie each is as likely to be chosen.
    """
    if score > best + width:
        return score, action, 1
    if score >= best - width:
        ties += 1
        if explore.random() * ties < 1.0:
            chosen = action
    return best, chosen, ties
