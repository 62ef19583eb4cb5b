"""`dpbandits reproduce`."""

from pathlib import Path

import typer
from rich.console import Console

from dpbandits import checks
from dpbandits.cli.output import JSON, check_folder, console, print_json, print_rows, stoppable
from dpbandits.experiments import FIGURES, figure_named
from dpbandits.experiments.documentation import would_lower, write_reproduction
from dpbandits.experiments.figure import Result, Scale
from dpbandits.experiments.reproduce import claim_rows
from dpbandits.experiments.reproduce import reproduce as run_figure


def reproduce(
    names: list[str] = typer.Argument(help="Names from `dpbandits figures`, or `all`."),
    scale: Scale = typer.Option(Scale.quick, help="quick: the shape; paper: as published."),
    out: Path = typer.Option(Path("dpbandits-results"), help="Folder for traces, pictures, pages."),
    device: str = typer.Option("cpu", help="Or cuda: an NVIDIA GPU plays all that it can."),
    threads: int = typer.Option(None, help="Changes the time it takes, never the result."),
    scheduler: str = typer.Option(None, help="Play on a Dask cluster: tcp://HOST:8786."),
    docs: Path = typer.Option(None, help="Also write reproduction.md and its pictures there."),
    as_json: bool = JSON,
) -> None:
    """Reproduce published figures and check what the paper says about them.

    An interrupted run keeps what is finished; the same command resumes there.
    """
    checks.one_of(("cpu", "cuda"), device=device)
    for name, folder in {"out": out, "docs": docs}.items():
        if folder is not None:
            check_folder(name, folder)
    chosen = [figure_named(name) for name in dict.fromkeys(names) if name != "all"]
    for figure in FIGURES.values() if "all" in names else ():
        if figure in chosen:
            continue
        if (needed := figure.missing()) is None:
            chosen.append(figure)
        else:
            Console(stderr=True).print(f"left out {figure.name}: {needed}", soft_wrap=True)
    results: dict[str, Result] = {}
    for figure in chosen:
        folder = out / f"{figure.name}-{scale.value}"
        with stoppable(f"finished runs are kept in {out}" if figure.simulations(scale) else ""):
            result = run_figure(
                figure,
                scale,
                folder,
                sweep=out / "sweep",
                device="cuda" if device == "cuda" else "cpu",
                threads=threads,
                on=scheduler,
            )
        results[figure.name] = result
        if not as_json:
            rows = [
                {k: v for k, v in row.items() if k != "figure"} for row in claim_rows(figure, result)
            ]
            print_rows(rows, f"{figure.name}: {figure.title} ({result.scale})")
            for note in result.notes:
                console().print(f"Note: {note}", soft_wrap=True)
            console().print(f"written: {folder}/report.html, {figure.name}.svg\n", style="dim")
    if docs is not None:
        for name in (one.name for one in chosen if would_lower(docs, one.name, scale)):
            Console(stderr=True).print(f"{name} stays at paper scale in {docs}", soft_wrap=True)
        write_reproduction(docs, {one.name: (one, results[one.name], scale) for one in chosen})
    if as_json:
        print_json(
            {
                name: {
                    "scale": result.scale,
                    "claims": [claim.to_dict() for claim in result.claims],
                }
                for name, result in results.items()
            }
        )
