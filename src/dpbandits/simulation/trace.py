"""The result of a simulation: regret and reward on a thin grid, with all that made it."""

import contextlib
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dpbandits import checks
from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.extras import extra
from dpbandits.limits import Limit, known_limit
from dpbandits.policies import Policy
from dpbandits.privacy.guarantees import Guarantee
from dpbandits.reports.figures import add_headline, regret_figure, save_figure
from dpbandits.reports.tables import Row, text_table
from dpbandits.simulation.header import FORMAT, run_numbers
from dpbandits.simulation.kept import reward_kept
from dpbandits.simulation.merging import merged_parts
from dpbandits.simulation.run import Played
from dpbandits.simulation.whole_file import whole_file
from dpbandits.wording import ROUNDING, counted, number
from dpbandits.worlds import Environment

if TYPE_CHECKING:
    import polars as pl

_KEY = "dpbandits"
_OF_A_LOG = ("LoggedArms", "LoggedContexts")


class Summary(list[Row]):
    """Rows that print as a table, and what must be said of them; `frame()` is the same for polars."""

    caveat = ""

    def __str__(self) -> str:
        return text_table(self) + (f"\n{self.caveat}" if self.caveat else "")

    __repr__ = __str__

    def frame(self) -> "pl.DataFrame":
        """A polars frame, which comes with the extra `tables`."""
        with extra("tables"):
            import polars as pl

        return pl.DataFrame(list(self))


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Curves per policy and run. `rounds` is the grid; each curve array is (runs, points, 3)."""

    header: dict[str, Any]
    rounds: NDArray[np.int64]
    curves: dict[str, NDArray[np.float64]]
    seconds: dict[str, float]

    @classmethod
    def of(
        cls,
        header: dict[str, Any],
        grid: NDArray[np.int64],
        played: Mapping[tuple[str, int], Played],
    ) -> Self:
        """The trace of finished runs."""
        labels, runs = list(header["policies"]), run_numbers(header)
        curves = {x: np.stack([played[x, run].curves for run in runs]) for x in labels}
        seconds = {x: sum(played[x, run].seconds for run in runs) for x in labels}
        return cls(header, grid, curves, seconds)

    @classmethod
    def merged(cls, parts: Iterable[Self]) -> Self:
        """One trace of all policies and runs, as if they had been simulated together.

        Parts are traces of the same simulation: other runs, `simulate(..., runs=range(100, 200))`, or
        other policies, on the same rounds of the same world with the same seed.
        """
        return cls(*merged_parts(list(parts)))

    def __getitem__(self, runs: slice) -> Self:
        """Some runs of it: `trace[:100]` is the trace of the first hundred."""
        if not isinstance(runs, slice) or runs.step not in (None, 1):
            raise InvalidInput(f"expected runs as in trace[100:200], got {checks.shown(runs)}")
        numbers = run_numbers(self.header)[runs]
        if not numbers:
            raise InvalidInput(f"there are no such runs; this trace has {self.header['runs']:,}")
        header = {key: value for key, value in self.header.items() if key != "first_run"}
        header |= {"runs": len(numbers)} | ({"first_run": numbers.start} if numbers.start else {})
        share = len(numbers) / self.header["runs"]
        curves = {label: found[runs] for label, found in self.curves.items()}
        return type(self)(
            header, self.rounds, curves, {label: share * spent for label, spent in self.seconds.items()}
        )

    def __repr__(self) -> str:
        rounds, runs = self.header["rounds"], self.header["runs"]
        played = f"{counted(runs, 'run')} of {counted(rounds, 'round')}"
        return f"<Trace of {', '.join(self.policies)}: {played}>"

    @property
    def device(self) -> str:
        """What made it: "cpu", or "cuda" and the name of the GPU."""
        return " ".join(self.header.get(name, "") for name in ("device", "gpu")).strip() or "cpu"

    @property
    def generator(self) -> str:
        """Where its draws came from."""
        found: str = self.header.get("generator", "PCG64")
        return found

    @property
    def leaps(self) -> bool:
        """Whether it was played in leaps, which have other draws than round by round."""
        return bool(self.header.get("leaps", False))

    @property
    def policies(self) -> list[str]:
        """The labels, in the order given."""
        return list(self.curves)

    def recipes(self) -> dict[str, Policy]:
        """By label, the policies as they were started; without those that are not defined here."""
        found = {}
        for label, record in self.header.get("policies", {}).items():
            with contextlib.suppress(InvalidInput):
                found[label] = Policy.from_dict(record)
        return found

    def guarantee(self, policy: str) -> Guarantee:
        """What was promised for this policy on this problem."""
        self._curves(policy)
        return Guarantee.from_dict(self.header["guarantees"][policy])

    def regret(self, policy: str) -> NDArray[np.float64]:
        """Expected regret Σ (best mean − chosen mean): (runs, points), the last column final."""
        return self._curves(policy)[:, :, 0]

    def reward(self, policy: str) -> NDArray[np.float64]:
        """Realised reward so far: (runs, points)."""
        return self._curves(policy)[:, :, 1]

    def empirical_regret(self, policy: str) -> NDArray[np.float64]:
        """Σ (best mean − reward), which the papers plot; noisier, and may be negative."""
        return self._curves(policy)[:, :, 2] - self._curves(policy)[:, :, 1]

    def optimum(self) -> float:
        """What the best action would have earned, on average over runs."""
        return float(self._curves(self.policies[0])[:, -1, 2].mean())

    def reward_kept(self, policy: str) -> NDArray[np.float64]:
        """Expected reward as a share of the best action's, of each run; nan where that is 0 or less."""
        optimum = self._curves(policy)[:, -1, 2]
        return 1.0 - self.regret(policy)[:, -1] / np.where(optimum > 0.0, optimum, np.nan)

    @functools.cached_property
    def limits(self) -> dict[str, Limit]:
        """By policy, what no policy of its budget beats in the long run on this world, where known."""
        try:
            world = Environment.from_dict(self.header["environment"])
        except InvalidInput:  # a world that is not defined here, or whose data is elsewhere
            return {}
        held = {label: self.guarantee(label).budget for label in self.policies}
        known = {budget: known_limit(world, budget) for budget in held.values()}
        return {label: found for label in held if (found := known[held[label]]) is not None}

    def different_limits(self) -> list[Limit]:
        """Each of them once, the highest first."""
        once = {limit.name: limit for limit in self.limits.values()}
        return sorted(once.values(), key=lambda limit: -limit.rate)

    def about_limits(self) -> list[str]:
        """What "× limit" is in a table, and what it assumes; nothing where no limit is known."""
        if not self.limits:
            return []
        rates = ", ".join(f"{number(one.rate)} ln t ({one.name})" for one in self.different_limits())
        said = dict.fromkeys(one.sentence for one in self.limits.values())
        longest = [one for one in said if not any(one != other and one in other for other in said)]
        return [
            f"× limit: regret as a multiple of what no policy beats in the long run: {rates}. "
            + " ".join(longest)
        ]

    def times_limit(self, policy: str) -> float | None:
        """Mean regret at the last round as a multiple of the limit there; None where none is known."""
        if (limit := self.limits.get(policy)) is None:
            return None
        least = float(limit.at(self.header["rounds"]))
        return float(self.regret(policy)[:, -1].mean()) / least if least > ROUNDING else None

    def table(self) -> "pl.DataFrame":
        """Tidy rows: policy, run, round, regret, reward, optimum (what the best would have earned).

        A polars frame, which comes with the extra `tables`.
        """
        with extra("tables"):
            import polars as pl

        runs, points = self.header["runs"], self.rounds.size
        parts = [
            pl.DataFrame(
                {
                    "policy": [label] * (runs * points),
                    "run": np.repeat(np.array(run_numbers(self.header)), points),
                    "round": np.tile(self.rounds, runs),
                    "regret": self.regret(label).ravel(),
                    "reward": self.reward(label).ravel(),
                    "optimum": self._curves(label)[:, :, 2].ravel(),
                }
            )
            for label in self.policies
        ]
        return pl.concat(parts)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the summary, as plain values."""
        played = self.header["runs"] * self.header["rounds"]
        found = []
        for label in self.policies:
            final = self.regret(label)[:, -1]
            error = float(final.std(ddof=1) / np.sqrt(final.size)) if final.size > 1 else float("nan")
            found.append(
                {
                    "policy": label,
                    "guarantee": self.guarantee(label).short(),
                    "mean_regret": float(final.mean()),
                    "standard_error": error,
                    "worst_run": float(final.max()),
                    "ns_per_round": 1e9 * self.seconds[label] / played,
                }
            )
        return found

    def summary(self) -> "Summary":
        """One row per policy: guarantee, mean final regret, its standard error, the worst run."""
        found = Summary(self.rows())
        found.caveat = self.caveat
        return found

    @property
    def caveat(self) -> str:
        """What tables and pictures say of themselves: nothing, unless people's data is in them."""
        world = self.header["environment"]
        if world["kind"] not in _OF_A_LOG:
            return ""
        return f"Made of {world['title']} itself, without noise: no private release of it."

    def plot(self, path: str | Path | None = None) -> Any:
        """Mean regret, shaded where 80 % of the runs are; saved to `path` (svg, png, pdf) if given.

        Dotted is what no policy of such a budget beats in the long run, where that is known.
        Drawn by matplotlib, which comes with the extra `plot`.
        """
        shown = {x: self._with_budget(x) for x in self.policies}
        curves = {shown[x]: self.regret(x) for x in self.policies}
        policies = {shown[x]: policy for x, policy in self.recipes().items()}
        limits = {
            f"limit for large t, {one.name}": one.at(self.rounds) for one in self.different_limits()
        }
        return self._drawn(regret_figure(self.rounds, curves, limits, policies), path)

    def _with_budget(self, label: str) -> str:
        """A label, and what it guarantees where it does not say so."""
        short = self.guarantee(label).short()
        return label if short.startswith("none") or label.endswith(f", {short}") else f"{label}, {short}"

    def plot_kept(self, path: str | Path | None = None) -> Any:
        """The share of the best action's reward that each policy keeps, against its budget.

        Policies at several budgets are one line: labels that end in the budget, "lazy-ucb, 1-DP".
        """
        return self._drawn(reward_kept(self).draw(), path)

    def _drawn(self, figure: Any, path: str | Path | None) -> Any:
        if self.caveat:
            add_headline(figure, self.caveat)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def save(self, path: str | Path) -> Path:
        """Write the table as Parquet, with seed, versions, recipes and guarantees inside.

        Written by polars, which comes with the extra `tables`.
        """
        with extra("tables"):
            import polars as pl

        if Path(path).suffix != ".parquet":
            raise InvalidInput(f"expected a trace to be saved as .parquet, got {path}")
        about = json.dumps({"header": self.header, "seconds": self.seconds})
        try:
            with whole_file(Path(path)) as draft:  # an interrupted save leaves no half of a trace
                self.table().write_parquet(draft, metadata={_KEY: about})
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SaveFileError(f"cannot write {path}: {error}") from error
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a trace written by `save`."""
        with extra("tables"):
            import polars as pl

        try:
            about = json.loads(pl.read_parquet_metadata(path)[_KEY])
            header, seconds = about["header"], about["seconds"]
            if header["format"] > FORMAT:
                raise SaveFileError(f"{path} was written by the newer dpbandits {header['version']}")
            table = pl.read_parquet(path)
            columns = table.select("regret", "reward", "optimum").to_numpy()
            grid = table["round"].unique().sort().to_numpy()
            shape = (len(header["policies"]), header["runs"], grid.size, 3)
            blocks = np.ascontiguousarray(columns).reshape(shape)
        except FileNotFoundError:
            raise SaveFileError(f"there is no trace at {path}") from None
        except (pl.exceptions.PolarsError, OSError, KeyError, ValueError, TypeError) as error:
            raise SaveFileError(f"{path} is not a trace of dpbandits: {error}") from error
        return cls(header, grid, dict(zip(header["policies"], blocks, strict=True)), seconds)

    def _curves(self, policy: str) -> NDArray[np.float64]:
        return self.curves[checks.known("policy in this trace", policy, self.curves)]
