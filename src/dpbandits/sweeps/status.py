"""What of a sweep is finished, what is being played and by whom, what is missing."""

import time
from typing import Any

from dpbandits.sweeps.claims import holder
from dpbandits.sweeps.folder import Folder
from dpbandits.sweeps.plan import Plan


def status_rows(plan: Plan, folder: Folder) -> list[dict[str, Any]]:
    """One row for each cell, in the order of the plan: units in all, missing, and who is playing."""
    finished, now = folder.names(), time.time()
    rows: dict[Any, dict[str, Any]] = {}
    for cell, unit in plan.units():
        columns: dict[str, Any] = {
            "policy": cell.label,
            "budget": str(cell.policy.privacy),
            "world": cell.world,
        }
        columns |= {"rounds": cell.rounds, "units": 0, "missing": 0, "being_played_by": ""}
        row, name = rows.setdefault(cell, columns), unit.name()
        row["units"] += 1
        if name not in finished:
            row["missing"] += 1
            row["being_played_by"] = holder(folder.claims, name, now) or row["being_played_by"]
    return list(rows.values())
