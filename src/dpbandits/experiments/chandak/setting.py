"""What the figures of this paper share."""

from dpbandits.experiments.figure import Scale
from dpbandits.policies import Policy
from dpbandits.policies.matroid import (
    FocusedMatroidUCB,
    MatroidThompson,
    MatroidUCB,
    PrivateMatroidThompson,
    PrivateMatroidUCB,
)
from dpbandits.privacy.budgets import Budget, PureDP
from dpbandits.problems import LinearMatroid
from dpbandits.worlds import MatroidArms

PAPER = "Chandak, Hu & Hegde"
TABLE_2 = MatroidArms(
    LinearMatroid(((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (2, 0, 0), (0, 0, 0))),
    (0.80, 0.75, 0.60, 0.20, 0.30, 0.40, 0.70),
)
TWO = PureDP(2.0)
UCB, THOMPSON, FOCUSED = "DPUCB-MAT", "DPTS-MAT", "FocusedMatroidUCB"
PANELS = {"ucb": UCB, "thompson": THOMPSON}
RUNS = {Scale.quick: 8, Scale.paper: 20}
TOO_FEW = {
    Scale.quick: f"our {RUNS[Scale.quick]} runs are too few",
    Scale.paper: f"as in the paper; our {RUNS[Scale.paper]} runs are too few",
}
COMPARABLE = 0.8  # of the rival's gain over random bases: the margin usual in tests of equivalence
NOTE = (
    "DPUCB-MAT and DPTS-MAT as printed: a first round in which all L items of one person are looked at, "
    "which is no basis and is counted as earning nothing. That look is the printed round 0: t counts "
    "the rounds after it, so that the index has ln(Kt) as printed, and OMM's has √(2 ln t/T_e). The "
    "rivals without privacy begin with the same look. Numbers of runs are ours: the paper does not "
    "state its own."
)


def as_printed(kind: type[PrivateMatroidUCB] | type[PrivateMatroidThompson], budget: Budget) -> Policy:
    """With the printed initialisation."""
    return kind(privacy=budget, calibration="paper")


def ucb_policies() -> dict[str, Policy]:
    """DPUCB-MAT, its rival without privacy, and ours at the same ε."""
    return {
        UCB: as_printed(PrivateMatroidUCB, TWO),
        "OMM (not private)": MatroidUCB(first_round="look"),
        FOCUSED: FocusedMatroidUCB(privacy=TWO),
    }


def thompson_policies() -> dict[str, Policy]:
    """DPTS-MAT, its rival without privacy, and ours at the same ε."""
    return {
        THOMPSON: as_printed(PrivateMatroidThompson, TWO),
        "CTS, Gaussian (not private)": MatroidThompson(first_round="look"),
        FOCUSED: FocusedMatroidUCB(privacy=TWO),
    }
