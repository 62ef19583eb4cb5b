"""Readers of a site, made up: each is shown a headline, and some of them click.

    KEY=dpb_… python reader.py [experiment] [readers]

It needs `pip install '.[client]'`, and a key with the scopes `decide` and `reward`. On a site, the
lines of `visit` are all there is.
"""

import os
import random
import sys
import uuid
from collections import Counter

from dpbandits.client import Client, ServiceError


def visit(client: Client, experiment: str, reader: str | None) -> str:
    """One visit: decide, show, say how it went."""
    decision = client.decide(experiment, person=reader)
    clicked = random.random() < taste(decision.action)
    if not client.reward(decision, 1.0 if clicked else 0.0):
        print("too late: the round had closed")
    return str(decision.action)


def taste(action: object) -> float:
    """How likely a click is: these readers like long headlines."""
    return min(0.9, len(str(action)) / 40)


def main(experiment: str = "headline", readers: str = "100") -> None:
    """Let them come, and show which headlines they saw."""
    url = os.environ.get("URL", "http://127.0.0.1:8000")
    with Client(url, os.environ["KEY"]) as client:
        # Named where the experiment tells people apart. A site knows its own; these are new each time.
        told_apart = client.experiment(experiment)["problem"]["rounds_per_person"] is not None
        names = (f"reader-{uuid.uuid4()}" if told_apart else None for _ in range(int(readers)))
        shown = Counter(visit(client, experiment, name) for name in names)
        for action, times in shown.most_common():
            print(f"{times:6} × {action}")
        print(f"{len(client.ledger(experiment))} entries in the ledger; everybody may see {url}/")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ServiceError as error:
        sys.exit(str(error))
