"""`dpbandits figures`."""

from dpbandits.cli.output import JSON, console, print_json, print_rows
from dpbandits.experiments import FIGURES


def figures(as_json: bool = JSON) -> None:
    """Every published figure that can be reproduced."""
    rows = [{"figure": f.name, "shows": f.title, "paper": f.paper} for f in FIGURES.values()]
    if as_json:
        print_json(rows)
        return
    print_rows(rows)
    console().print("Reproduce one: dpbandits reproduce NAME [--scale paper]", style="dim")
