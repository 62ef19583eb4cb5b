"""What is asked for: every combination that accepts its budget, cut into units of work."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpbandits import checks
from dpbandits.errors import BudgetNotAccepted, HorizonReached, InvalidInput
from dpbandits.notation import typed
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import Budget
from dpbandits.simulation.gpu import check_gpu_can
from dpbandits.simulation.leaps import check_can_leap, check_leap_device
from dpbandits.simulation.replicate import Device, check_can_play
from dpbandits.sweeps.choices import Choice, chosen_budgets, chosen_policies, chosen_worlds
from dpbandits.sweeps.unit import Unit, blocks, code_of
from dpbandits.worlds import Environment

Policies = Iterable[Policy | type[Policy] | str] | Mapping[str, Policy | type[Policy] | str]
Environments = Environment | Iterable[Environment] | Mapping[str, Environment]
_MOST_RUNS = 10**9


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination."""

    policy: Policy
    label: str  # of the policy
    environment: Environment
    world: str  # the label of the environment
    rounds: int

    def __str__(self) -> str:
        return f"{self.label} at {self.policy.privacy} on {self.world}, {self.rounds:,} rounds"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All cells of a sweep, and how each is played; `left_out` says which combinations are none."""

    cells: tuple[Cell, ...]
    left_out: tuple[str, ...]
    runs: int
    seed: int
    points: int
    block: int | None
    device: Device
    leaps: bool = False

    @classmethod
    def of(
        cls,
        *,
        policies: Policies,
        environments: Environments,
        budgets: Iterable[Budget | str] | Budget | str = (),
        rounds: int | Iterable[int],
        runs: int = 20,
        seed: int = 0,
        points: int = 100,
        block: int | None = None,
        device: Device = "cpu",
        leaps: bool = False,
    ) -> "Plan":
        """As for `dpbandits.sweep`; what cannot be right is refused before anything is played."""
        checks.integer(least=1, limit=_MOST_RUNS, runs=runs)
        checks.seed(seed)
        checks.integer(least=1, limit=checks.MOST_ACTIONS, points=points)
        checks.one_of(("cpu", "cuda"), device=device)
        if leaps:
            check_leap_device(device)
        if block is not None:
            checks.integer(least=1, limit=checks.MOST_ACTIONS, block=block)
        lengths = [rounds] if isinstance(rounds, int) else checks.sequence("rounds", rounds)
        for length in lengths:
            checks.integer(least=1, rounds=length)
        if not lengths or len(set(lengths)) < len(lengths):
            raise InvalidInput(f"expected rounds that differ, got {checks.shown(rounds)}")
        made = _Combinations(
            chosen_policies(policies),
            chosen_worlds(environments),
            chosen_budgets(budgets),
            device,
            leaps,
        )
        cells = tuple(made.cells([int(length) for length in lengths]))
        return cls(
            cells=cells,
            left_out=tuple(made.left_out),
            runs=int(runs),
            seed=int(seed),
            points=int(points),
            block=block,
            device=device,
            leaps=bool(leaps),
        )

    def units(self) -> Iterator[tuple[Cell, Unit]]:
        """Blocks of runs of every cell. More runs later begin with the same blocks."""
        for cell in self.cells:
            code = code_of(cell.policy, cell.environment)
            size = self.device, self.block
            for runs in blocks(cell.rounds, self.runs, self.points, *size, leaps=self.leaps):
                yield (
                    cell,
                    Unit(
                        policy=cell.policy,
                        environment=cell.environment,
                        rounds=cell.rounds,
                        runs=runs,
                        seed=self.seed,
                        points=self.points,
                        device=self.device,
                        leaps=self.leaps,
                        code=code,
                    ),
                )


class _Combinations:
    """Every policy at every budget it accepts on every world that it fits, and a word on the others."""

    def __init__(
        self,
        policies: dict[str, Choice],
        worlds: dict[str, Environment],
        budgets: list[Budget],
        device: Device,
        leaps: bool,
    ) -> None:
        self._policies, self._worlds, self._budgets = policies, worlds, budgets
        self._device, self._leaps = device, leaps
        self.left_out: list[str] = []

    def cells(self, lengths: list[int]) -> list[Cell]:
        found: dict[tuple[Any, ...], Cell] = {}
        for (label, choice), (world, environment) in itertools.product(
            self._policies.items(), self._worlds.items()
        ):
            if not isinstance(environment.problem(None), choice.kind.problem_kind):
                self.left_out.append(f"{label} on {world}: it is for another kind of problem")
                continue
            for policy in self._at_budgets(label, choice):
                for rounds in lengths:
                    cell = Cell(
                        policy=policy, label=label, environment=environment, world=world, rounds=rounds
                    )
                    twin = found.get((policy, environment, rounds))
                    if twin is not None:
                        raise InvalidInput(f"the same was given twice: {twin}, and {cell}")
                    if self._can_play(cell):
                        found[policy, environment, rounds] = cell
        self._refuse_idle(list(found.values()))
        return list(found.values())

    def _at_budgets(self, label: str, choice: Choice) -> Iterator[Policy]:
        """A policy that takes no budget, or has its own, is played once."""
        if choice.recipe is not None:
            yield choice.recipe
        elif choice.kind.takes_no_budget():
            yield choice.made()
        else:
            yield from (choice.made(b) for b in self._budgets if isinstance(b, choice.kind.accepts))
            refused = [str(b) for b in self._budgets if not isinstance(b, choice.kind.accepts)]
            if refused:
                accepted = " or ".join(map(typed, choice.kind.accepts))
                self._leave_out(f"{label} at {', '.join(refused)}: it accepts {accepted}")

    def _can_play(self, cell: Cell) -> bool:
        problem = cell.environment.problem(cell.rounds)
        try:
            check_can_play(cell.label, cell.policy, problem, cell.rounds)
            if self._device == "cuda":
                check_gpu_can(cell.label, cell.policy, problem)
            if self._leaps:
                check_can_leap(cell.label, cell.policy, problem, cell.environment)
        except (InvalidInput, BudgetNotAccepted, HorizonReached) as error:
            self._leave_out(f"{cell}: {error}")
            return False
        return True

    def _leave_out(self, sentence: str) -> None:
        if sentence not in self.left_out:
            self.left_out.append(sentence)

    def _refuse_idle(self, cells: list[Cell]) -> None:
        """What is in no cell was given by mistake."""
        why = f" ({'; '.join(self.left_out[:3])})" if self.left_out else ""
        for label in self._policies:
            if label not in {cell.label for cell in cells}:
                hint = "" if self._budgets or why else " (it needs a budget, and budgets is empty)"
                raise InvalidInput(f"{label} is in no combination of this sweep{why or hint}")
        for world in self._worlds:
            if world not in {cell.world for cell in cells}:
                raise InvalidInput(f"no policy of this sweep plays on {world}{why}")
        for budget in self._budgets:
            if budget not in {cell.policy.privacy for cell in cells}:
                raise InvalidInput(f"no policy of this sweep is played at {budget}{why}")
