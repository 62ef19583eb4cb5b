"""What a published figure is here: simulations, a drawing, and claims with a verdict."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.simulation import Trace
from dpbandits.simulation.timing import Timing
from dpbandits.worlds import Environment


class Scale(StrEnum):
    """How large: `quick` shows the shape in seconds, `paper` is what was published."""

    quick = "quick"
    paper = "paper"


class Verdict(StrEnum):
    """What can be said of a claim; no other words are used."""

    holds = "holds"
    fails = "does not hold"  # by the paper's own algorithm, on its data and at its scale
    not_reached = "not reached"  # an asymptotic bound that says nothing yet at the largest scale played
    other_set_up = "other set-up"  # data, scale or algorithm are not the paper's


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper, by what it is judged, what was measured about it, and the verdict.

    `criterion` is fixed before anything is measured, and `holds` says whether it is met. Where what was
    played `differs` from what the paper speaks of, or where the claim only `speaks_from` some T on, that
    is no verdict on the paper, and neither word is used. `holds` is None where the measurements cannot
    tell, because they `differ` (in being too few, say). A claim may be `ours`, beside those of a paper,
    and may have a `scale` of its own.
    """

    paper: str
    measured: str
    holds: bool | None
    criterion: str = ""
    differs: str = ""
    speaks_from: str = ""
    ours: bool = False
    scale: str = ""  # where it is not the figure's: a formula, a replay

    def __post_init__(self) -> None:
        if self.holds is None and not self.differs:
            raise InvalidInput(f"what cannot be told must say how it differs: {self.paper}")

    @property
    def verdict(self) -> Verdict:
        """One of the four."""
        if self.differs:
            return Verdict.other_set_up
        if self.speaks_from:
            return Verdict.not_reached
        return Verdict.holds if self.holds else Verdict.fails

    @property
    def in_words(self) -> str:
        """The verdict, and why it is not simply yes or no."""
        if self.differs:
            found = {True: "so", False: "not so", None: "undecided"}[self.holds]
            return f"{self.verdict} ({self.differs}): {found} here"
        if self.speaks_from:
            return f"{self.verdict}: would speak from {self.speaks_from} on"
        return self.verdict.value

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self) | {"verdict": self.verdict.value}


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The arguments of one `simulate`."""

    policies: Mapping[str, Policy]
    environment: Environment
    rounds: int
    runs: int
    seed: int = 0
    points: int = 100
    timing: Timing = field(default_factory=Timing)
    rounds_per_person: int | None = None
    leaps: bool = False

    @property
    def total_rounds(self) -> int:
        """Over all policies and runs."""
        return self.rounds * self.runs * len(self.policies)


@dataclass(frozen=True, kw_only=True)
class Result:
    """A reproduced figure."""

    drawing: Any
    claims: list[Claim]
    scale: str
    caption: str
    notes: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)


class Figure(ABC):
    """One published figure or table."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    notes: ClassVar[tuple[str, ...]] = ()
    minutes: ClassVar[bool] = False  # at paper scale; seconds otherwise
    published: ClassVar[bool] = True  # whether picture and table may be kept with the documentation

    def missing(self) -> str | None:
        """What the user must do before it can be made, such as fetching data; None if nothing."""
        return None

    @property
    def is_of_a_paper(self) -> bool:
        """Rather than a goal of our own."""
        return self.paper != "dpbandits"

    shown: ClassVar[Scale | None] = None  # in the docs; unless said, quick if it takes minutes

    def simulations(self, scale: Scale) -> dict[str, Simulation]:
        """What must be simulated, by name; nothing for a figure of formulas."""
        return {}

    @abstractmethod
    def describe_scale(self, scale: Scale) -> str:
        """Rounds, runs and grid, in a few words."""

    @abstractmethod
    def draw(self, traces: Mapping[str, Trace], scale: Scale) -> Any:
        """The figure, with the paper's axes."""

    @abstractmethod
    def claims(self, traces: Mapping[str, Trace], scale: Scale) -> list[Claim]:
        """The paper's claims, measured."""

    def rows(self, traces: Mapping[str, Trace], scale: Scale) -> list[dict[str, Any]]:
        """A table to show beside the picture, where there is one."""
        return []

    def result(self, traces: Mapping[str, Trace], scale: Scale) -> Result:
        """Drawing and claims together; at a quick scale nothing is a verdict on a paper."""
        claims = self.claims(traces, scale)
        if scale is Scale.quick and self.is_of_a_paper and self.simulations(scale):
            claims = [
                one if one.ours else replace(one, differs=one.differs or "quick scale") for one in claims
            ]
        return Result(
            drawing=self.draw(traces, scale),
            claims=claims,
            scale=self.describe_scale(scale),
            caption=f"{self.title} ({self.paper})",
            notes=list(self.notes),
            rows=self.rows(traces, scale),
        )
