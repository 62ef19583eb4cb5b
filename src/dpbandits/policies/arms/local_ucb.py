r"""UCB on answers that people randomise themselves (Gajane, Urvoy & Kaufmann 2018; Ren et al. 2020)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.engine import Chance, Noise, NoSecret
from dpbandits.engine.state import ANYTHING, COUNT, Limits
from dpbandits.errors import InvalidInput
from dpbandits.mechanisms.randomized_response import debiased, heads, response_bias
from dpbandits.mechanisms.rounding import rounded, rounding_step
from dpbandits.policies.arms.shared.choosing import largest
from dpbandits.policies.arms.shared.protection import arms_guarantee
from dpbandits.policies.local import LocalPolicy
from dpbandits.policies.messages import NOISE_REACH
from dpbandits.policies.released import Reading, of_sums
from dpbandits.privacy.budgets import LAPLACE_OR_NONE, GaussianDP
from dpbandits.privacy.calibration import gaussian_scale, laplace_scale
from dpbandits.privacy.guarantees import Guarantee, Trust
from dpbandits.problems.arms import Arms, centred

COIN, LAPLACE, NORMAL = 0, 1, 2


class Public(NamedTuple):
    """The means of what was reported, and how wide their confidence intervals are."""

    round: NDArray[np.int64]  # (1,) messages so far
    plays: NDArray[np.int64]  # n_i
    total: NDArray[np.float64]  # Σ (estimate of r − ½)
    mean: NDArray[np.float64]  # x_i
    width: NDArray[np.float64]  # 1/√n_i
    score: NDArray[np.float64]  # the index
    kind: int  # of noise
    bias: float  # c of the coin
    scale: float  # of the other noises
    step: float  # to which their numbers are rounded
    spread: float  # √(2V)
    tail: float  # b: the tail of Laplace noise
    loglog: float

    def limits(self) -> Limits:
        """An arm nobody has reported on has an index beyond all others."""
        return {"round": COUNT, "plays": COUNT, "score": ANYTHING}

    def select(self, context: None, explore: Chance) -> int:
        """An arm nobody has reported on yet, then the largest index."""
        level = math.log(max(self.round[0], 0) + 1.0)  # a server may say anything
        if self.loglog > 0.0:
            level += self.loglog * math.log(max(level, 1.0))
        radius, lift = self.spread * math.sqrt(level), self.tail * level
        for arm in range(self.plays.size):
            if self.plays[arm] == 0:
                self.score[arm] = math.inf
            else:
                wide = float(self.width[arm])
                self.score[arm] = self.mean[arm] + (radius + lift * wide) * wide
        return largest(self.score, explore)

    def report(self, context: None, action: int, reward: float, noise: Noise) -> tuple[int, float]:
        """The arm, and a coin or a noisy number about its reward."""
        value = centred(reward)
        if self.kind == COIN:
            return action, float(noise.binomial(1, heads(value, self.bias)))
        if self.kind == LAPLACE:
            return action, rounded(noise.laplace(value, self.scale), self.step)
        return action, rounded(noise.normal(value, self.scale), self.step)

    def receive(self, message: tuple[int, float]) -> None:
        """Restate the mean of the arm it is about."""
        arm, answer = message
        if self.kind == COIN:
            answer = debiased(answer, self.bias)
        self.round[0] += 1
        self.plays[arm] += 1
        self.total[arm] += answer
        self.mean[arm] = self.total[arm] / self.plays[arm] + 0.5
        self.width[arm] = 1.0 / math.sqrt(self.plays[arm])


@dataclass(frozen=True, kw_only=True)
class LocalUCB(LocalPolicy):
    r"""Play the largest upper confidence bound of answers that people randomised themselves.

    **Definition.** Arms nobody has reported on come first, at random. Then, after t messages, n_i of
    them about arm i with mean estimate x_i, a person plays

        argmax_i  x_i + √(2V f/n_i) + b f/n_i,    f = ln(t + 1) + k·ln ln(t + 1),

    with k = `loglog` (3 in proofs, 0 in practice), ties broken at random, and sends the arm with

    - `rewards="binary"`: a coin, 1 with probability ½ + c(r − ½), estimate ½ + (coin − ½)/c. For r ∈
      {0, 1} this is the truth with probability p = (1 + c)/2 = e^ε/(1 + e^ε). V = 1/(4c²), b = 0.
    - `rewards="bounded"`: r + Laplace(1/ε), V = ¼ + 2/ε², b = 1/ε; under μ-GDP r + N(0, 1/μ²),
      V = ¼ + 1/μ², b = 0.

    The server never sees a reward. A coin is one bit, without rounding error, and does for fractions as
    well. Under ε-DP its V = ¼ + ¼/sinh²(ε/2) is always the smaller one; under μ-GDP Gaussian numbers are
    better below about μ = 2.4, for 0/1 rewards too.
    Without privacy the answers are the rewards (with "binary", fractions rounded at random).

    **Guarantee.** Neighbours replace one reward. It is in one message, by one draw: a coin whose odds
    change by at most the factor e^ε, or a number that moves by at most 1 under noise of scale 1/ε (or
    1/μ). The arm follows from the broadcast and free randomness, and is not protected. So every message
    is ε-DP (μ-GDP for p = Φ(μ/2)) whatever the server or the others do, and whatever is broadcast:
    kind and scale of the noise come from the person's own recipe. Numbers are sent without their last
    bits (`mechanisms/rounding.py`).

    **Regret.** Each estimate is sub-gamma with variance V and tail b, so the bonus holds with
    probability 1 − e^−f. For k = 3 the analysis of Garivier & Cappé (2011), with a quadratic divergence,
    gives (2V + o(1)) Σ ln T/Δ_i for coins and Gaussian noise: for coins Σ ln T/(2 tanh²(ε/2) Δ_i),
    of the order 1/ε² that no local policy can improve on (Gajane, Urvoy & Kaufmann 2018). Ren et al.
    (2020) show the order for Laplace noise.

    >>> from dpbandits.privacy.budgets import PureDP
    >>> policy, problem = LocalUCB(privacy=PureDP(1.0)), Arms(3)
    >>> server = policy.start(problem)
    >>> person = policy.person(problem, server.broadcast())
    >>> person.select() in range(3)
    True
    >>> server.receive(person.report(1.0))
    >>> server
    <Server LocalUCB(privacy=PureDP(epsilon=1.0), ...) on Arms(..., arms=3, ...), 1 messages>
    """

    status: ClassVar[str] = "proved"
    problem_kind: ClassVar = Arms
    accepts: ClassVar = LAPLACE_OR_NONE
    paper: ClassVar[str] = "Gajane, Urvoy & Kaufmann 2018"

    rewards: Annotated[
        Literal["binary", "bounded"],
        'What people send: "binary", one coin, or "bounded", a noisy number.',
    ] = "binary"
    loglog: Annotated[float, "The factor of ln ln t in the index: 3 in proofs, 0 in practice."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(("binary", "bounded"), rewards=self.rewards)
        checks.width(loglog=self.loglog)

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        """Nothing reported yet."""
        kind, bias, scale = self._noise()
        variance = 0.25 / (bias * bias) + scale * scale * (2.0 if kind == LAPLACE else 1.0)
        arms = problem.arms
        public = Public(
            round=np.zeros(1, np.int64),
            plays=np.zeros(arms, np.int64),
            total=np.zeros(arms),
            mean=np.zeros(arms),
            width=np.zeros(arms),
            score=np.zeros(arms),
            kind=kind,
            bias=bias,
            scale=scale,
            step=rounding_step(scale),
            spread=math.sqrt(2.0 * variance),
            tail=scale if kind == LAPLACE else 0.0,
            loglog=self.loglog,
        )
        return public, NoSecret()

    def _noise(self) -> tuple[int, float, float]:
        """Kind, bias of a coin, scale of the others."""
        if self.rewards == "binary":
            return COIN, response_bias(self.privacy), 0.0
        if isinstance(self.privacy, GaussianDP):
            return NORMAL, 1.0, gaussian_scale(1.0, self.privacy)
        return LAPLACE, 1.0, laplace_scale(1.0, self.privacy)

    def parse_message(self, problem: Arms, content: Any) -> tuple[int, float]:
        """An arm of the problem, and an answer that its noise can give."""
        if not (isinstance(content, list) and len(content) == 2):
            raise InvalidInput("expected the content of a message to be an arm and an answer")
        arm, answer = content[0], checks.number("answer", content[1])
        checks.integer(least=0, arm=arm)
        if arm >= problem.arms:
            raise InvalidInput(f"expected arm to be below {problem.arms}, got {arm}")
        kind, _, scale = self._noise()
        if kind == COIN:
            checks.one_of((0.0, 1.0), answer=answer)
        elif not abs(answer) <= 0.5 + NOISE_REACH * scale:
            raise InvalidInput(
                f"expected answer within {NOISE_REACH:g} scales of a reward, got {answer:g}"
            )
        return arm, answer

    def released(self, problem: Arms, public: Public) -> Reading:
        """The means of what was reported: all but ¼ of V is noise."""
        variance = public.plays * (0.5 * public.spread**2 - 0.25)
        return of_sums("arm", public.total, public.plays, variance, laplace=public.kind == LAPLACE)

    def draws_of_one(self, problem: Any) -> float:
        """Her message is one."""
        return 1.0

    def guarantee(self, problem: Arms) -> Guarantee:
        """The budget itself, for every message."""
        return arms_guarantee(self.privacy, problem, trust=Trust.LOCAL)
