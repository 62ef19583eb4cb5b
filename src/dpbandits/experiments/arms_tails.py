"""The rare bad runs of the recommended policies for arms: very many runs, on a GPU.

`python benchmarks/gpu.py --tails --out docs/arms_tails.json` plays them; `make docs` puts what that file
holds into docs/reproduction.md, below the leaderboard whose instances, budgets and rounds these are.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbandits.experiments.arms_leaderboard import BUDGETS, INSTANCES, ROUNDS
from dpbandits.problems import Arms
from dpbandits.recommend import recommend
from dpbandits.reports.tables import Row, markdown_table
from dpbandits.simulation import simulate
from dpbandits.simulation.replicate import Device
from dpbandits.wording import counted

NAME = "arms-tails"
FILE = "arms_tails.json"
_PERCENTILES = 99.0, 99.9, 99.99
_SEED = 1  # another than the leaderboard's


def tail_rows(runs: int, instances: tuple[str, ...] = tuple(INSTANCES), **options: Any) -> Iterator[Row]:
    """One for each instance and budget; `options` are those of `simulate`."""
    for instance in instances:
        for budget in BUDGETS:
            policy = recommend(Arms(5, horizon=ROUNDS), budget).policy
            trace = simulate(
                {"it": policy}, INSTANCES[instance], runs=runs, seed=_SEED, points=1, **options
            )
            yield {
                "instance": instance,
                "guarantee": str(budget),
                "policy": policy.name(),
                **_summary(trace.regret("it")[:, -1]),
            }


def _summary(regret: NDArray[np.float64]) -> Row:
    tails = np.percentile(regret, _PERCENTILES).tolist()
    return {
        "runs": regret.size,
        "mean regret": float(regret.mean()),
        "standard error": float(regret.std(ddof=1) / np.sqrt(regret.size)),
        **{f"{share:g} %": value for share, value in zip(_PERCENTILES, tails, strict=True)},
        "worst run": float(regret.max()),
    }


def measure_tails(
    path: Path, runs: int, more: int, device: Device = "cuda", rounds: int = ROUNDS
) -> None:
    """Write the file: so many runs of every instance, and `more` on the first."""
    from dpbandits.simulation.gpu import about_gpu

    options: dict[str, Any] = {"rounds": rounds, "device": device, "progress": False}
    made_by = about_gpu() if device == "cuda" else {"device": device}
    record: dict[str, Any] = {**made_by, "rounds": rounds, "seed": _SEED, "rows": []}
    for part in (tail_rows(runs, **options), tail_rows(more, tuple(INSTANCES)[:1], **options)):
        for row in part:
            record["rows"].append(row)
            # After each: what is measured is not lost.
            path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def tails_section(path: Path) -> str:
    """The section of docs/reproduction.md, from the file; empty where there is none."""
    if not path.exists():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    device = " ".join(record.get(name, "") for name in ("device", "gpu", "generator")).strip()
    return (
        f"\n## {NAME}: The rare bad runs of the recommended policies for arms\n\n"
        f"dpbandits · `python benchmarks/gpu.py --tails --out docs/{path.name}`\n\n"
        f"{counted(record['rounds'], 'round')} on the instances of arms-leaderboard, other draws "
        f"({device}). The columns of percentages are percentiles of regret over runs. Where there are "
        "two rows, the longer simulation includes the shorter.\n\n"
        f"{markdown_table(record['rows'])}"
    )
