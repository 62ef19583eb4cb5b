"""What `dpbandits compare` found, as rows, sentences, pictures and a page."""

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpbandits.cli.choosing import TWIN
from dpbandits.cli.data import about
from dpbandits.cli.output import typed_command
from dpbandits.errors import InvalidInput
from dpbandits.notation import typed
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget, NonPrivate
from dpbandits.recommend import recommend
from dpbandits.reports.html import Page
from dpbandits.reports.kept import mean_and_interval
from dpbandits.reports.tables import Ratio
from dpbandits.simulation import Trace
from dpbandits.simulation.kept import kept_by_uniform, without_budget
from dpbandits.simulation.run import problem_of
from dpbandits.wording import ROUNDING, counted, number
from dpbandits.worlds import Environment, LoggedArms, LoggedContexts

_BEST = 3  # policies at each budget that are shown unless all are asked for


@dataclass(frozen=True)
class Comparison:
    """Policies played on one world, at one budget or several; `chosen` by the labels of the trace."""

    trace: Trace
    world: Environment
    chosen: dict[str, Policy]
    budgets: Sequence[Budget]
    notes: list[str] = field(default_factory=list)
    shows_all: bool = True

    @property
    def is_of_several(self) -> bool:
        """Whether there is an axis of privacy."""
        return len([held for held in self.budgets if not isinstance(held, NonPrivate)]) > 1

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The summary, best first (at each budget), with regret as multiples of twin and limit."""
        rows = sorted(self.trace.rows(), key=lambda row: float(row["mean_regret"]))
        regret = {row["policy"]: row["mean_regret"] for row in rows}
        labels: dict[Policy | None, str] = {policy: label for label, policy in self.chosen.items()}
        for row in rows:
            if math.isnan(row["standard_error"]):  # of a single run
                row["standard_error"] = None
            held = self.chosen[row["policy"]]
            twin = held.twin()
            of_twin = regret[labels[twin]] if twin in labels else 0.0
            row["times_twin"] = Ratio(row["mean_regret"] / of_twin) if of_twin > ROUNDING else None
            times = self.trace.times_limit(row["policy"])
            row["times_limit"] = None if times is None else Ratio(times)
            _, half = mean_and_interval(self.trace.regret(row["policy"])[:, -1])
            row["regret_interval"] = None if math.isnan(half) else half
            mean, half = mean_and_interval(self.trace.reward_kept(row["policy"]))
            row["reward_kept"] = None if math.isnan(mean) else mean
            row["kept_interval"] = None if math.isnan(half) else half
            row["budget"] = typed(held.privacy)
        if self.is_of_several:
            order = {typed(held): place for place, held in enumerate(self.budgets)}
            rows.sort(key=lambda row: order.get(row["budget"], len(order)))  # the best stay first
        return rows

    @property
    def uniform_regret(self) -> float:
        """What random actions lose, all rounds together."""
        return self.world.uniform_total(self.trace.header["rounds"])

    @cached_property
    def recommended(self) -> dict[str, str]:
        """By budget, the label of what `dpbandits recommend` names there, if it was played."""
        header, found = self.trace.header, {}
        problem = problem_of(self.world, header["rounds"], header.get("rounds_per_person"))
        labels = {policy: label for label, policy in self.chosen.items()}
        for held in self.budgets:
            with contextlib.suppress(InvalidInput):  # nothing is, for this problem and budget
                named = recommend(problem, held).policy
                if named in labels:
                    found[typed(held)] = labels[named]
        return found

    @cached_property
    def best(self) -> list[dict[str, Any]]:
        """The best few rows of each budget, and what is recommended there."""
        places: Counter[str] = Counter()
        found = []
        for row in self.rows:
            places[row["budget"]] += 1
            if places[row["budget"]] <= _BEST or row["policy"] in self.recommended.values():
                found.append(row)
        return found

    @property
    def hidden(self) -> int:
        """How many rows a table has not, unless all are asked for."""
        return 0 if self.shows_all or not self.is_of_several else len(self.rows) - len(self.best)

    def about_hidden(self) -> list[str]:
        """A sentence about rows that are not shown."""
        if not self.hidden:
            return []
        return [
            f"Shown are the best {_BEST} at each budget, and what is recommended there: "
            f"{self.hidden} of {len(self.rows)} rows are not."
        ]

    def _with_uniform(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows, and one to compare them with."""
        empty = (
            "regret_interval",
            "worst_run",
            "ns_per_round",
            "times_twin",
            "times_limit",
            "kept_interval",
        )
        found = {"policy": "uniform play", "guarantee": "", "mean_regret": self.uniform_regret}
        found |= {"reward_kept": self.kept_by_uniform(), "budget": "none"}
        return [*rows, found | dict.fromkeys(empty)]

    def shown(self) -> list[dict[str, Any]]:
        """What fits into 80 columns: how long it took is in the report and in the JSON."""
        return [
            {
                "policy": self.name_of(row["policy"]),
                "guarantee": row["guarantee"],
                "kept": percent(row["reward_kept"]),
                "regret": row["mean_regret"],
                "±": row["regret_interval"],
                "worst run": row["worst_run"],
                "× twin": row["times_twin"],
                **({"× limit": row["times_limit"]} if self.trace.limits else {}),
            }
            for row in self._with_uniform(self.best if self.hidden else self.rows)
        ]

    def reading(self) -> list[str]:
        """What the columns are."""
        found = ["kept: expected reward as a share of that of always playing the best action."]
        if self.world.in_hindsight():
            found.append(
                "regret: against the one arm that was best over all rounds; it can be negative."
            )
        if self.trace.header["runs"] > 1:
            runs = counted(self.trace.header["runs"], "run")
            found.append(
                f"±: half of a 95 % confidence interval of the mean over {runs} (Student's t); where "
                "two intervals overlap, neither policy is shown to be better."
            )
        found.append("× twin: regret as a multiple of that of the same algorithm without privacy.")
        if self.trace.leaps:
            found.append(
                "In leaps: all rewards of a batch are one draw; by the same law, but not the numbers "
                "that this seed gives round by round."
            )
        return [*found, *self.trace.about_limits(), *self.whose_twins()]

    def name_of(self, label: str) -> str:
        """A label without its budget, which another column has; of several, `none` says it is a twin."""
        bare = label.removesuffix(TWIN) if self.is_of_several else label
        for held in self.budgets:
            bare = without_budget(bare, held)
        return bare

    def kept_by_uniform(self) -> float | None:
        """The share of the reward that random actions keep."""
        return kept_by_uniform(self.trace)

    def picture(self) -> Any:
        """Reward against privacy where there are several budgets; otherwise regret against rounds."""
        return self.trace.plot_kept() if self.is_of_several else self.trace.plot()

    def takeaways(self) -> list[str]:
        """The answer in a sentence or two for each budget."""
        if not self.is_of_several:
            return [_times_twin(row) for row in self.rows if row["times_twin"]]
        found = []
        for held in (*(one for one in self.budgets if not isinstance(one, NonPrivate)), NonPrivate()):
            rows = [row for row in self.rows if row["budget"] == typed(held)]
            if rows and rows[0]["reward_kept"] is not None:
                under = "Without privacy" if isinstance(held, NonPrivate) else f"At {held}"
                found.append(f"{under}, {self._best_of(rows)}.")
        return [*found, f"Uniform play keeps {percent(self.kept_by_uniform())}."]

    def _best_of(self, rows: list[dict[str, Any]]) -> str:
        """What the best policy of a budget keeps, and the recommended one."""
        first, label = rows[0], self.recommended.get(rows[0]["budget"])
        named = self.name_of(first["policy"])
        if label == first["policy"]:
            named += ", which is recommended,"
        said = f"{named} keeps {_with_interval(first)} of the best reward"
        others = [row for row in rows[1:] if row["policy"] == label]
        for row in others:
            said += f"; {self.name_of(row['policy'])}, which is recommended, {_with_interval(row)}"
        return said

    def whose_twins(self) -> list[str]:
        """A sentence for each twin that has another name."""
        said = []
        for label, one in self.chosen.items():
            others = [name for name, other in self.chosen.items() if other.twin() == one]
            if any(self.chosen[name].name() != one.name() for name in others):
                named = dict.fromkeys(map(self.name_of, others))
                said.append(f"{self.name_of(label)} is the twin of {', '.join(named)}.")
        return said

    def sentences(self) -> list[str]:
        """Each guarantee once, after the policies that give it."""
        labels: dict[str, list[str]] = {}
        for label in self.trace.policies:
            labels.setdefault(str(self.trace.guarantee(label)), []).append(self.name_of(label))
        return [f"{', '.join(named)}: {sentence}" for sentence, named in labels.items()]

    def played(self) -> str:
        """What was played, where, and how rounds followed each other if not one by one."""
        header = self.trace.header
        rounds, runs = counted(header["rounds"], "round"), counted(header["runs"], "run")
        said = f"{rounds} on {self.world.in_words()}, {runs}"
        if "in_flight" in header:
            said += f", {counted(header['in_flight'], 'round')} in flight"
        if "delays" in header:
            said += f", rewards after {number(header['delays']['median'])} decisions (median)"
        if "gpu" in header:
            said += f", on {header['gpu']}"
        if "rounds_per_person" in header:
            said += f", at most {header['rounds_per_person']} of one person"
        return said

    def page(self) -> Page:
        """All of it, to be passed on."""
        header = self.trace.header
        page = Page("What does privacy cost?", f"Regret over {self.played()}, seed {header['seed']}.")
        said = self.takeaways()
        page.text(*([" ".join(said)] if self.is_of_several else said))
        if self.is_of_several:
            caption = (
                "Mean over runs with its 95 % interval, side by side where budgets are the same; the "
                "best action's reward is 100 %."
            )
            if len({type(held) for held in self.budgets} - {NonPrivate}) > 1:
                caption += " Definitions of privacy have a panel each: no axis holds two of them."
        else:
            caption = "Mean regret; shaded: where the middle 80 % of runs are. Dashed: no privacy."
            if self.trace.limits:
                caption += " Dotted: what no policy beats in the long run; at a given t one may."
        page.picture(self.picture(), caption)
        if isinstance(self.world, LoggedArms | LoggedContexts):
            page.section("What was played").text(*about(self.world))
        page.section("Reward and regret at the last round")
        page.table(self._table(self.best if self.hidden else self.rows))
        if self.hidden:
            page.text(*self.about_hidden()).folded("All rows", self._table(self.rows))
        page.text(*self.notes)
        page.section("Guarantees")
        if self.trace.caveat:
            page.text(
                "Of each policy in use, for those it decides for. None is about this page, which is "
                "made of the log itself, without noise."
            )
        page.text(*self.sentences())
        page.section("How to read this").text(
            "Regret is what was lost against always playing the best action. A twin is the same "
            "algorithm without a privacy budget. ε-DP and (ε, δ)-DP are the usual definitions; under "
            "μ-GDP, somebody who sees all decisions can guess which of two values one person brought no "
            "better than whether a draw is from N(0, 1) or from N(μ, 1). Policies that first try every "
            "arm do so in the order given, which is why a curve may start flat.",
            " ".join(self.reading()),
        )
        page.section("How to make this page again")
        page.command(typed_command() if sys.argv[1:2] == ["compare"] else "compare")
        page.text(
            f"dpbandits {header['version']}, numpy {header['numpy']}, numba {header['numba']}, "
            f"seed {header['seed']}; `compare --save` keeps every curve with its recipes."
        )
        return page

    def _table(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows as a page has them: shares in percent, budgets once."""
        return [
            {
                "policy": self.name_of(row["policy"]),
                "guarantee": row["guarantee"],
                "reward kept": _with_interval(row),
                "regret": row["mean_regret"],
                "±": row["regret_interval"],
                "worst run": row["worst_run"],
                "× twin": row["times_twin"],
                **({"× limit": row["times_limit"]} if self.trace.limits else {}),
                "ns a round": row["ns_per_round"],
            }
            for row in self._with_uniform(rows)
        ]


def percent(share: float | None) -> str | None:
    """A share as people read it, to a tenth."""
    return None if share is None else f"{100.0 * share:.1f} %"


def _with_interval(row: dict[str, Any]) -> str | None:
    if row["reward_kept"] is None or row["kept_interval"] is None:
        return percent(row["reward_kept"])
    return f"{100.0 * row['reward_kept']:.1f}\u00a0±\u00a0{100.0 * row['kept_interval']:.1f}\u00a0%"


def _times_twin(row: dict[str, Any]) -> str:
    error = "" if row["regret_interval"] is None else f" ± {row['regret_interval']:,.0f}"
    return (
        f"{row['policy']} at {row['guarantee']}: {row['mean_regret']:,.0f}{error}, "
        f"{row['times_twin']} times the regret of its twin."
    )
