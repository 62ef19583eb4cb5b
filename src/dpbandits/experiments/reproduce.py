"""Running a figure: its simulations are a sweep, so that an interrupted run resumes where it stopped."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpbandits.errors import InvalidInput
from dpbandits.experiments.figure import Figure, Result, Scale
from dpbandits.experiments.playing import play
from dpbandits.extras import check_installed
from dpbandits.reports.figures import PICTURES, save_figure
from dpbandits.reports.html import Page
from dpbandits.reports.tables import Ratio, Row
from dpbandits.simulation import Trace
from dpbandits.simulation.replicate import Device


def reproduce(
    figure: Figure,
    scale: Scale,
    folder: Path,
    *,
    sweep: Path | None = None,
    device: Device = "cpu",
    threads: int | None = None,
    on: Any = None,
    progress: bool = True,
) -> Result:
    """Simulate what is missing, then write traces, the picture, the claims and a page into `folder`.

    The picture is PDF, PNG and SVG. Finished units are kept in the folder `sweep`, which figures
    may share. With `device="cuda"` the GPU plays all that it can. `threads` and `on` are as for
    `dpbandits.sweep`.
    """
    if (needed := figure.missing()) is not None:
        raise InvalidInput(f"{figure.name} cannot be made yet: {needed}")
    check_installed("plot", "tables")
    folder.mkdir(parents=True, exist_ok=True)
    traces = play(
        figure.simulations(scale),
        sweep or folder / "sweep",
        figure.name,
        device=device,
        threads=threads,
        on=on,
        progress=progress,
    )
    for name, trace in traces.items():
        trace.save(folder / f"{name}.parquet")
    result = figure.result(traces, scale)
    if gpus := {trace.header["gpu"] for trace in traces.values() if "gpu" in trace.header}:
        result = replace(result, scale=f"{result.scale}; on {', '.join(sorted(gpus))}")
    for suffix in sorted(PICTURES):
        save_figure(result.drawing, folder / f"{figure.name}{suffix}")
    claims = [claim.to_dict() for claim in result.claims]
    record = {"figure": figure.name, "scale": result.scale, "claims": claims}
    (folder / "claims.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    page(figure, result, traces).write(folder / "report.html")
    return result


def claim_rows(figure: Figure, result: Result) -> list[Row]:
    """One row per claim, as shown on the terminal, in pages and in docs/reproduction.md."""
    said = "the paper says" if figure.is_of_a_paper else "our goal"
    return [
        {
            "figure": figure.name,
            said: claim.paper,
            **({"judged by": claim.criterion} if figure.is_of_a_paper else {}),
            "measured": claim.measured,
            "verdict": claim.in_words,
        }
        for claim in result.claims
    ]


def page(figure: Figure, result: Result, traces: dict[str, Trace]) -> Page:
    """A page with the picture, the verdicts and the numbers behind them."""
    made = Page(f"{figure.name}: {figure.title}", f"{figure.paper}. Scale: {result.scale}.")
    made.picture(result.drawing, result.caption)
    made.section("What is claimed, measured").table(claim_rows(figure, result))
    if result.rows:
        made.section("Numbers").table(result.rows)
    if result.notes:
        made.section("Notes").text(*result.notes)
    for name, trace in traces.items():
        made.section(f"Regret at the last round: {name}").table(_with_limits(trace))
        made.text(*trace.about_limits())
    return made


def _with_limits(trace: Trace) -> list[Row]:
    """The summary, with regret as multiples of what no policy beats in the long run, where known."""
    if not trace.limits:
        return list(trace.rows())
    times = {label: trace.times_limit(label) for label in trace.policies}
    return [
        row | {"times_limit": None if (found := times[row["policy"]]) is None else Ratio(found)}
        for row in trace.rows()
    ]
