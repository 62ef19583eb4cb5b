"""A small site with the page of this folder. It stands between browsers and the service.

    KEY=dpb_… python site.py        # then open http://127.0.0.1:8080/

Browsers ask it under /decisions. It adds what they must not hold or say: the API key, and who is decided
for. It needs `pip install '.[client]'`, and a key with the scopes `decide` and `reward`.
"""

import json
import os
import uuid
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dpbandits.client import Client, ServiceError

HERE = Path(__file__).parent
FILES = {"/": ("index.html", "text/html"), "/decide.js": ("decide.js", "text/javascript")}
service = Client(os.environ.get("URL", "http://127.0.0.1:8000"), os.environ["KEY"], retries=1)
visitors = set[str]()  # whom this site knows; a real one has a table of its sessions or accounts


class Site(BaseHTTPRequestHandler):
    """What browsers are answered."""

    def do_GET(self) -> None:
        """A file; with the page comes a cookie for whoever has none of ours."""
        name, kind = FILES.get(self.path, ("", ""))
        if name:
            known = self.visitor()
            cookie = "" if known else f"visitor={new_visitor()}; HttpOnly; SameSite=Lax; Path=/"
            self.answer(200, (HERE / name).read_bytes(), kind, cookie)
        else:
            self.answer(204, b"", "text/plain")

    def do_POST(self) -> None:
        """A decision for the visitor of this session, or how it went."""
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, told = 200, dict[str, Any]()
        try:
            if self.path == "/decisions/v1/experiments/headline/decide":
                made = service.decide("headline", person=self.visitor(), request=sent["request"])
                told = {"ticket": made.ticket, "action": made.action}
            else:
                told = {"recorded": service.reward(sent["ticket"], sent["reward"])}
        except ServiceError as error:  # the page goes on without
            status = error.status or 503
        self.answer(status, json.dumps(told).encode(), "application/json")

    def visitor(self) -> str | None:
        """Who it is, if this site knows her: a browser can say what it likes."""
        held = SimpleCookie(self.headers["cookie"]).get("visitor")
        return held.value if held and held.value in visitors else None

    def answer(self, status: int, body: bytes, kind: str, cookie: str = "") -> None:
        """One answer."""
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.end_headers()
        self.wfile.write(body)


def new_visitor() -> str:
    """A name that nobody can guess."""
    visitors.add(name := str(uuid.uuid4()))
    return name


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8080"))
    with ThreadingHTTPServer(("127.0.0.1", port), Site) as server:
        print(f"http://127.0.0.1:{port}/", flush=True)
        server.serve_forever()
