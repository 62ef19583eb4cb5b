"""Algorithm 2: private Thompson sampling, as printed and as in D.1."""

from collections.abc import Mapping
from typing import ClassVar

from dpbandits.experiments.evidence import median_of
from dpbandits.experiments.figure import Claim, Scale
from dpbandits.experiments.mishra_2015.bounds import speaks_from, thompson_share
from dpbandits.experiments.mishra_2015.setting import (
    ENDS,
    MEANS_TOO,
    PAPER,
    ROUNDS,
    SECOND_HAND,
    TreeRegret,
)
from dpbandits.policies import Policy
from dpbandits.policies.arms import BetaThompson, TreeThompson
from dpbandits.privacy.budgets import PureDP
from dpbandits.simulation import Trace

PRINTED, D1 = "as printed (gap phase, ε/2k)", "D.1 (ε/2k)"


class TreeThompsonRegret(TreeRegret):
    """Algorithm 2 and D.1."""

    name: ClassVar[str] = "mishra-thompson"
    title: ClassVar[str] = "Private Thompson sampling with trees: as printed, as in D.1, and not private"
    paper: ClassVar[str] = f"{PAPER}, Algorithm 2 and D.1"
    notes: ClassVar[tuple[str, ...]] = (
        f"{ENDS}A run never learns if in the last half of the rounds its regret is over half of what "
        "the second-best arm would have. D.1 says that there is no gap phase and that m is smaller, "
        "not how small. Our own rule: five standard deviations of the trees' largest noise, at most "
        "T/(2k), so that at ε = 0.1 half of the rounds are random pulls.",
        "Our readings, where the text is silent: n_a counts from the random pulls on, with which the "
        "trees begin (with the plays of the gap phase in n_a alone, Beta samples would be too low), "
        "r_a is brought back into [0, n_a], and logarithms are binary, as in appendix C. Trees are "
        "calibrated to their true number of levels. The paper gives each release ε/2k; one reward is "
        "in one batch or in one arm's tree, so that the whole is then ε/2k-DP, which is what the "
        "table says, and ε for each suffices for ε-DP.",
        f"{MEANS_TOO} What D.1's algorithm does on our arms with our rule for m is no claim of the "
        "paper's: those rows are ours.",
        SECOND_HAND,
    )

    def policies(self, privacy: PureDP) -> dict[str, Policy]:
        """Theory, and without the gap phase with both splits."""
        return {
            PRINTED: TreeThompson(privacy=privacy, calibration="paper"),
            D1: TreeThompson(privacy=privacy, gap_phase=False, calibration="paper"),
            "D.1, ε each": TreeThompson(privacy=privacy, gap_phase=False),
            "Beta Thompson (not private)": BetaThompson(),
        }

    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The theory, which does not speak yet; and D.1."""
        one = self.measured(traces)[1.0]
        forced = thompson_share(ROUNDS, 1.0)
        return [
            Claim(
                paper="Regret is polylogarithmic in T (second-hand; as printed, ε = 1, T = 10⁵)",
                criterion="The gap phase, if it ends at Δ̂ = Δ, and the random pulls take less than "
                "T rounds, and the 99 % interval of the median regret is below half of uniform play's",
                measured=f"{one.said(PRINTED)}; both phases take {forced:,.0f} times T rounds",
                holds=forced < 1.0 and median_of(one.final(PRINTED)).high < 0.5,
                speaks_from=speaks_from(lambda t: thompson_share(t, 1.0)) if forced >= 1.0 else "",
            ),
            Claim(
                paper="(ours) Without gap estimation and with a smaller m, as in D.1, it learns (ε = 1)",
                criterion=f"{D1}: the 99 % intervals of the median and of the mean regret are below "
                "half of uniform play's",
                measured=one.said(D1),
                holds=one.below(0.5, D1),
                ours=True,
            ),
            self.falls_with_budget(traces, D1, "(ours) Regret falls as ε grows", ours=True),
        ]
