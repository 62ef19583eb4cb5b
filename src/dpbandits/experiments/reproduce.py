"""Running a figure: traces kept in a folder, so that an interrupted run resumes where it stopped."""

import json
from functools import partial
from pathlib import Path

from dpbandits.errors import InvalidInput, SaveFileError
from dpbandits.experiments.figure import Figure, Result, Scale, Simulation
from dpbandits.extras import check_installed
from dpbandits.reports.figures import save_figure
from dpbandits.reports.html import Page
from dpbandits.reports.tables import Row
from dpbandits.simulation import Trace, simulate
from dpbandits.simulation.header import describe
from dpbandits.simulation.progress import RoundsBar


def reproduce(
    figure: Figure, scale: Scale, folder: Path, *, threads: int | None = None, progress: bool = True
) -> Result:
    """Simulate what is missing in `folder`, then write the picture, the claims and a page there."""
    if (needed := figure.missing()) is not None:
        raise InvalidInput(f"{figure.name} cannot be made yet: {needed}")
    check_installed("plot", "tables")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = figure.simulations(scale)
    traces = {}
    total = sum(simulation.total_rounds for simulation in wanted.values())
    with RoundsBar(total, figure.name, show=progress) as bar:
        for name, simulation in wanted.items():
            traces[name] = _trace(simulation, folder / f"{name}.parquet", bar, threads)
    result = figure.result(traces, scale)
    save_figure(result.drawing, folder / f"{figure.name}.svg")
    claims = [claim.to_dict() for claim in result.claims]
    record = {"figure": figure.name, "scale": result.scale, "claims": claims}
    (folder / "claims.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    page(figure, result, traces).write(folder / "report.html")
    return result


def _trace(simulation: Simulation, path: Path, bar: RoundsBar, threads: int | None) -> Trace:
    """The kept trace, if it is of exactly this simulation, here or beside; otherwise a new one."""
    s = simulation
    made_of = (dict(s.policies), s.environment, s.rounds, s.runs, s.seed)
    header = describe(*made_of, s.points, timing=s.timing, rounds_per_person=s.rounds_per_person)
    # Two figures of a paper may show the same simulations.
    for place in (path, *sorted(path.parent.parent.glob(f"*/{path.name}"))):
        kept = _kept(place)
        if kept is not None and kept.header == header:
            bar.spare(s.total_rounds)
            if place != path:
                kept.save(path)
            return kept
    checkpoint = path.with_suffix(".checkpoint")
    again = partial(
        simulate,
        *made_of,
        threads=threads,
        progress=bar,
        checkpoint=checkpoint,
        points=s.points,
        rounds_per_person=s.rounds_per_person,
        **s.timing.options(),
    )
    try:
        trace = again()
    except SaveFileError:
        # Finished runs of another version or scale: of no use for this one.
        checkpoint.unlink()
        trace = again()
    trace.save(path)
    return trace


def _kept(path: Path) -> Trace | None:
    try:
        return Trace.load(path)
    except SaveFileError:
        return None


def claim_rows(figure: Figure, result: Result) -> list[Row]:
    """One row per claim, as shown on the terminal, in pages and in docs/reproduction.md."""
    said = "our goal" if figure.paper == "dpbandits" else "the paper says"
    return [
        {
            "figure": figure.name,
            said: claim.paper,
            "measured": claim.measured,
            "verdict": claim.verdict,
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
        made.section(f"Regret at the last round: {name}").table(trace.rows())
    return made
