"""How fast the service decides: `python benchmarks/service.py [--seconds 10] [--connections 100]`.

Half of the requests decide and half reward, every one durable before it is answered. CPU of the server
for each request is compared with that of a bare ASGI route in the same run. Needs wrk, and PostgreSQL
where it is installed (both by `make system-packages`).
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import msgspec
from rich.console import Console

from dpbandits.reports.tables import terminal_table
from dpbandits.service.clock import Clock
from dpbandits.service.desk import Desk, Event
from dpbandits.service.ledger import Signer
from dpbandits.service.recovery import recover
from dpbandits.service.running import fingerprint_of
from dpbandits.service.sealing import Keyring
from dpbandits.service.store import Snapshot, Store
from dpbandits.service.terms import Terms

HERE = Path(__file__).parent
ROW = "[0.1,0.2,0.3,0.1,0.2,0.3,0.1,0.2]"
CONTEXT = f"[{ROW},{ROW},{ROW},{ROW},{ROW}]"
EXPERIMENTS = """
[[experiment]]
name = "arms"
privacy = "eps=1"
actions = ["a", "b", "c", "d", "e"]

[[experiment]]
name = "tree"
policy = "tree-ucb"
privacy = "eps=1"
actions = ["a", "b", "c", "d", "e"]
horizon = 1000000000

[[experiment]]
name = "people"
privacy = "eps=1"
actions = ["a", "b", "c", "d", "e"]
rounds_per_person = 3

[[experiment]]
name = "features"
problem = { kind = "LinearContexts", dim = 8 }
"""
BARE = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await receive()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"11")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"ok":true}'})
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], folder: Path, ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from when it is ready."""
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        try:
            for _ in range(1200):
                try:
                    with urlopen(ready, timeout=1):
                        break
                except OSError:
                    time.sleep(0.1)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def load(
    process: subprocess.Popen[bytes], url: str, options: argparse.Namespace, *arguments: str
) -> dict[str, object]:
    """What wrk measures, and the CPU that the server took for it."""
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s", "--latency"]
    script = ["-s", str(HERE / "service_load.lua"), url, "--", *arguments]
    before = cpu_of(process.pid)
    said = subprocess.run([*command, *script], check=True, capture_output=True, text=True).stdout
    took = cpu_of(process.pid) - before
    found = re.search(r"(\d+) requests in", said)
    assert found is not None, said
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    spread = [re.search(rf"{share}%\s+([\d.]+\w+)", said) for share in (50, 90, 99)]
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)
    return {
        "requests/s": "" if rate is None else f"{float(rate[1]):,.0f}",
        "p50 / p90 / p99": " / ".join("" if one is None else one[1] for one in spread),
        "cpu": 1e6 * took / int(found[1]),
        "refused": 0 if failed is None else int(failed[1]),
    }


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    (folder / "bare.py").write_text(BARE)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "bare:app", f"--port={port}", "--no-access-log"]
    with running([*command, "--log-level=error"], folder, f"http://127.0.0.1:{port}/") as process:
        return load(process, f"http://127.0.0.1:{port}", options, "none", "none")


def served(options: argparse.Namespace, folder: Path, database: str) -> Iterator[dict[str, object]]:
    (folder / "experiments.toml").write_text(EXPERIMENTS)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "dpbandits", "serve", "experiments.toml", f"--port={port}"]
    with running([*command, f"--db={database}"], folder, f"{url}/ready") as process:
        key = re.search(r"dpb_[\w-]+", (folder / "out.txt").read_text())
        assert key is not None
        for name in ("arms", "tree", "people", "features"):
            extra = {"features": ["context", CONTEXT], "people": ["person"]}.get(name, [])
            yield {"experiment": name, **load(process, url, options, key[0], name, *extra)}


def replay(events: int, policy: str, folder: Path) -> dict[str, object]:
    """Recover an experiment whose log was never folded."""
    declared = {"name": policy, "policy": policy, "privacy": "eps=1", "actions": list("abcde")}
    terms = Terms.read({**declared, "horizon": 10**9, "in_flight": 1000})
    store, keyring = Store(folder / f"{policy}.db"), Keyring(folder / f"{policy}.keys", create=True)
    store.migrate()
    store.acquire()
    desk, entries = Desk.begin(terms), -(-events // 512)
    with store.writing() as db:
        store.belongs_to(db, keyring.name)
        added = store.add_experiment(db, terms.name, terms.to_dict())
        seal = keyring.begin(added)
        fingerprint = msgspec.json.encode(fingerprint_of(desk)).decode()
        first = Snapshot(0, 0, fingerprint, seal.close("snapshot", 0, desk.snapshot()))
        store.fold(db, added, first)
        for entry in range(1, entries + 1):
            batch: list[Event | None] = []
            for number in range(desk.decided, desk.decided + 256):
                key = number.to_bytes(16, "big")
                batch.append(desk.decide(float(number), key, b"", None, None)[1])
                batch.append(desk.reward(number, float(number % 3 == 0)))
            store.append(db, added, entry, seal.close("log", entry, msgspec.msgpack.encode(batch)))
        store.move_head(db, added, 1, 0, entries)
    began, wall = time.process_time(), time.perf_counter()
    (found,) = recover(store, keyring, Signer(bytes(32)), Clock())
    took, waited = time.process_time() - began, time.perf_counter() - wall
    assert isinstance(found.desk, Desk)
    assert found.desk.snapshot() == desk.snapshot()
    store.close()
    return {
        "policy": policy,
        "events": f"{entries * 512:,}",
        "CPU s": f"{took:.1f}",
        "wall s": f"{waited:.1f}",
        "µs an event": f"{1e6 * took / (entries * 512):.1f}",
    }


def soak(options: argparse.Namespace, folder: Path, out: Console) -> None:
    """A steady load for a long time: memory, files and what is refused must not grow without end."""
    (folder / "experiments.toml").write_text(EXPERIMENTS)
    port = free_port()
    command = [sys.executable, "-m", "dpbandits", "serve", "experiments.toml", f"--port={port}"]
    with running(command, folder, f"http://127.0.0.1:{port}/ready") as process:
        key = re.search(r"dpb_[\w-]+", (folder / "out.txt").read_text())
        assert key is not None
        headers = {"Authorization": f"Bearer {key[0]}"}
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        refused, rows = Counter[int](), list[dict[str, object]]()

        def post(path: str, body: object) -> dict[str, object]:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            found: dict[str, object] = json.loads(answer.read())
            if answer.status != 200:
                refused[answer.status] += 1
            return found

        began, waiting, number = time.monotonic(), deque[object](), 0
        while (elapsed := time.monotonic() - began) < options.soak:
            name = ("arms", "tree", "people", "features")[number % 4]
            asked: dict[str, object] = {"request": f"soak-{number}"}
            asked |= {"person": str(number // 3)} if name == "people" else {}
            asked |= {"context": json.loads(CONTEXT)} if name == "features" else {}
            waiting.append(post(f"/v1/experiments/{name}/decide", asked).get("ticket"))
            number += 1
            if len(waiting) > 200:  # rewards come some seconds later
                post("/v1/reward", {"ticket": waiting.popleft(), "reward": number % 2})
            if elapsed >= len(rows) * options.soak / 12:
                rows.append(_footprint(process.pid, folder, elapsed, number))
                out.print(rows[-1])
            time.sleep(max(0.0, began + number / options.rate - time.monotonic()))
        rows.append(_footprint(process.pid, folder, options.soak, number))
        out.print(terminal_table(rows))
        out.print(f"refused: {dict(refused) or 'nothing'}")


def _footprint(pid: int, folder: Path, elapsed: float, decisions: int) -> dict[str, object]:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+)", status)
    size = sum(one.stat().st_size for one in folder.glob("dpbandits.db*"))
    return {
        "seconds": f"{elapsed:,.0f}",
        "decisions": f"{decisions:,}",
        "memory MB": f"{int(resident[1]) / 1024:.1f}" if resident else "",
        "files MB": f"{size / 2**20:.1f}",
        "CPU s": f"{cpu_of(pid):.0f}",
    }


def postgres_url() -> str | None:
    sys.path.insert(0, str(HERE.parent / "tests" / "support"))
    from postgres import Postgres, find_postgres

    programs = find_postgres()
    if programs is None:
        return None
    cluster = Postgres(programs)
    cluster.start()
    import atexit

    atexit.register(cluster.remove)
    return str(cluster.new_database())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--soak", type=float, help="seconds of a steady load, in place of all else")
    parser.add_argument("--rate", type=float, default=50.0, help="decisions a second of a soak")
    options, out = parser.parse_args(), Console(width=120)
    if options.soak is not None:
        with tempfile.TemporaryDirectory() as name:
            soak(options, Path(name), out)
        return
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed: make system-packages")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference = bare(options, folder)
        rows = [{"database": "none: a bare ASGI route", "experiment": "", **reference}]
        databases = {"SQLite": "load.db", "PostgreSQL": postgres_url()}
        for label, database in databases.items():
            if database is not None:
                (folder / label).mkdir()
                found = served(options, folder / label, database)
                rows += [{"database": label, **row} for row in found]
        alone = float(str(reference["cpu"]))
        for row in rows:
            cpu = float(str(row.pop("cpu")))
            row["CPU of a request"] = f"{cpu:.0f} µs"
            row["against bare"] = f"{cpu / alone:.1f}"
        out.print(f"{options.connections} connections, {options.seconds} s each")
        out.print(terminal_table(rows))
        replays = [replay(options.events, one, folder) for one in ("noise-aware-imed", "tree-ucb")]
        out.print("Recovery of a log that was never folded")
        out.print(terminal_table(replays))


if __name__ == "__main__":
    main()
