"""All other routes: what is public, what an administrator does, health, metrics, the page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from dpbandits.errors import InvalidInput
from dpbandits.service import pages
from dpbandits.service.access import SCOPES, ApiKey, digest, new_key
from dpbandits.service.commands import Change, Message, Open, Stop
from dpbandits.service.hot import (
    App,
    DecideAnswer,
    DecideRequest,
    Hot,
    RewardAnswer,
    RewardRequest,
    read_body,
    unreadable,
)
from dpbandits.service.refusals import Refusal
from dpbandits.service.service import Service
from dpbandits.service.succession import follower
from dpbandits.service.terms import FIELDS, InvalidTerms, Terms, check_label
from dpbandits.service.views import View
from dpbandits.version import __version__

_MOST_ENTRIES = 1000
_KEYS_EVERY = 5.0  # seconds between two looks for keys that another process made
_LOOPBACK = ("127.0.0.1", "::1")
_PAGE_HEADERS = {
    "content-security-policy": pages.CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class KeyRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A new API key: what it is called and what it may do."""

    name: str
    scopes: list[str]
    experiments: list[str] | None = None
    rate: float | None = None


class LabelRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An action that is added."""

    label: str


def _body_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """How OpenAPI describes what a route is sent, which FastAPI does not read for us."""
    (schema,) = msgspec.json.schema(kind)["$defs"].values()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_TERMS = {
    "type": "object",
    "description": "The terms of an experiment, as in a TOML file; docs/service.md has them all.",
    "properties": {field: {} for field in FIELDS},
    "additionalProperties": False,
    "required": ["name"],
}
_BODY_OF_TERMS = {"requestBody": {"required": True, "content": {"application/json": {"schema": _TERMS}}}}


def make_app(service: Service) -> App:
    """The whole of it, as ASGI."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        looking = asyncio.create_task(_reload_keys(service))
        yield
        looking.cancel()
        await service.stop()

    app = FastAPI(
        title="dpbandits",
        version=__version__,
        summary="Decisions that learn from people without giving any one of them away.",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirection repeats what was sent
        lifespan=lifespan,
    )
    _refuse_in_our_words(app)
    _add_public(app, service)
    _add_acts(app, service)
    _add_local(app, service)
    _document_hot(app)
    return Hot(service, app)


async def _reload_keys(service: Service) -> None:
    while True:
        await asyncio.sleep(_KEYS_EVERY)
        try:
            await service.reload_keys()
        except Exception:  # the database may be away; the keys known stay in force
            continue


def _refuse_in_our_words(app: FastAPI) -> None:
    def answer(refusal: Refusal) -> Response:
        headers = {name.decode(): value.decode() for name, value in refusal.headers()}
        return Response(refusal.body(), refusal.status, headers)

    async def refused(_: Request, error: Exception) -> Response:
        if isinstance(error, Refusal):
            return answer(error)
        if isinstance(error, RequestValidationError):
            return answer(Refusal("invalid"))
        if isinstance(error, HTTPException):
            if error.status_code == 405:
                return answer(Refusal("wrong-method", allow=(error.headers or {}).get("Allow", "")))
            return answer(Refusal("no-such-route"))
        return answer(Refusal("failed"))

    for kind in (Refusal, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, refused)


def _add_public(app: FastAPI, service: Service) -> None:
    """What leaves without a key: made of `View`, ledger entries and states, and of nothing else."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        views, entries = await service.views(), await service.entries_shown()
        standby = service.writer.state == "standby"
        body = pages.render(views, entries=entries, standby=standby, version=__version__)
        return Response(body, media_type="text/html; charset=utf-8", headers=_PAGE_HEADERS)

    @app.get("/v1/experiments", summary="All experiments: what is public of each")
    async def experiments() -> Response:
        return _json({"experiments": [_short(view) for view in await service.views()]})

    @app.get("/v1/experiments/{name}", summary="What is public of an experiment")
    async def experiment(name: str) -> Response:
        for view in await service.views():
            if view.name == name:
                return _json(view.to_dict())
        raise Refusal("no-such-experiment")

    @app.get("/v1/experiments/{name}/ledger", summary="Entries of its ledger, for `dpbandits verify`")
    async def ledger(name: str, after: int = -1, limit: int = _MOST_ENTRIES) -> Response:
        if not (-1 <= after < 2**31 and 1 <= limit <= _MOST_ENTRIES):
            raise Refusal("invalid")
        return _json({"entries": await service.ledger(name, after, limit)})

    @app.get("/health", summary="Whether the process answers")
    async def health() -> Response:
        return _json({"healthy": True})

    @app.get("/ready", summary="Whether it decides; 503 while it recovers or stands by")
    async def ready() -> Response:
        if not service.is_ready:
            raise Refusal("standby" if service.writer.state == "standby" else "not-ready")
        return _json({"ready": True})

    @app.get("/metrics", summary="For Prometheus; the operator's own only with a key")
    async def metrics(request: Request) -> Response:
        given = request.headers.get("authorization")
        if given is not None or request.client is None or request.client.host not in _LOOPBACK:
            service.access.check(None if given is None else given.encode(), "metrics", None)
        body = service.metrics.page(for_operator=given is not None)
        return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_acts(app: FastAPI, service: Service) -> None:
    """What an administrator does: public acts, through the writer's queue like everything else."""

    def admin(request: Request) -> None:
        given = request.headers.get("authorization")
        service.access.check(None if given is None else given.encode(), "admin", None)

    @app.post(
        "/v1/experiments",
        status_code=201,
        summary="Begin an experiment; its terms as JSON",
        openapi_extra=_BODY_OF_TERMS,
    )
    async def begin(request: Request) -> Response:
        admin(request)
        asked = await _object(request)
        terms, desk = await service.prepare.of((None, asked), lambda: Terms.read(asked))
        return _json({"name": await service.ask(Open(terms, desk=desk))}, 201)

    @app.post(
        "/v1/experiments/{name}/successor",
        status_code=201,
        summary="Stop it, begin another",
        openapi_extra=_BODY_OF_TERMS,
    )
    async def successor(name: str, request: Request) -> Response:
        admin(request)
        one, asked = service.named(name), await _object(request)
        if not one.has_ended:
            one.refuse_unless_running()
        terms, desk = await service.prepare.of(
            (name, asked), lambda: follower(one.terms, **{"name": name} | asked)
        )
        if terms.name in service.writer.running:
            raise Refusal("exists")
        if one.is_running:
            await service.ask(Stop(name))
        return _json({"name": await service.ask(Open(terms, name, desk))}, 201)

    @app.post("/v1/experiments/{name}/stop", summary="End it: publish the result, erase all else")
    async def stop(name: str, request: Request) -> Response:
        admin(request)
        return _json({"stopped": await service.ask(Stop(name))})

    @app.post(
        "/v1/experiments/{name}/actions",
        status_code=201,
        summary="Add an action",
        openapi_extra=_body_of(LabelRequest),
    )
    async def add(name: str, request: Request) -> Response:
        admin(request)
        label = _read(LabelRequest, await _body(request)).label
        _check_label(label)
        return _json({"added": await service.ask(Change(name, "add", label))}, 201)

    @app.post("/v1/experiments/{name}/actions/{label}/{act}", summary="Retire or revive an action")
    async def change(name: str, label: str, act: str, request: Request) -> Response:
        admin(request)
        if act not in ("retire", "revive"):
            raise Refusal("no-such-route")
        return _json({"changed": await service.ask(Change(name, act, label))})

    @app.post(
        "/v1/keys",
        status_code=201,
        summary="Make an API key, which is shown this once",
        openapi_extra=_body_of(KeyRequest),
    )
    async def make_key(request: Request) -> Response:
        admin(request)
        text, key = _new_key(_read(KeyRequest, await _body(request)))
        if not await asyncio.to_thread(service.store.add_key, key):
            raise Refusal("exists")
        await service.reload_keys()
        return _json({"key": text, "name": key.name}, 201)

    @app.delete("/v1/keys/{name}", summary="Revoke an API key")
    async def revoke(name: str, request: Request) -> Response:
        admin(request)
        if not name.isprintable() or not await asyncio.to_thread(service.store.revoke_key, name):
            raise Refusal("no-such-route", detail="No key has this name.")
        await service.reload_keys()
        return _json({"revoked": True})


def _add_local(app: FastAPI, service: Service) -> None:
    """The local model: people decide on their own, by a broadcast, and send a message."""

    def check(request: Request, scope: str, name: str) -> None:
        given = request.headers.get("authorization")
        service.access.check(None if given is None else given.encode(), scope, name)

    @app.get("/v1/experiments/{name}/broadcast", summary="Local model: what a person decides by")
    async def broadcast(name: str, request: Request) -> Response:
        check(request, "decide", name)
        _, desk = service.local(name)
        body = await asyncio.to_thread(desk.broadcast)
        return Response(body, media_type="application/json", headers={"cache-control": "no-store"})

    @app.post("/v1/experiments/{name}/message", summary="Local model: what a person sends")
    async def message(name: str, request: Request) -> Response:
        check(request, "reward", name)
        one, _ = service.local(name)
        await service.ask(Message(one.id, await _body(request)))
        return _json({"recorded": True})


def _check_label(label: str) -> None:
    try:
        check_label(label)
    except InvalidTerms:
        raise Refusal("invalid", detail="A label is a printable text of 1 to 200 characters.") from None


def _new_key(asked: KeyRequest) -> tuple[str, ApiKey]:
    text, some = new_key(), asked.experiments
    if not (0 < len(asked.name) <= 100 and asked.name.isprintable()):
        raise Refusal("invalid", detail="A key has a printable name of 1 to 100 characters.")
    try:
        return text, ApiKey(
            name=asked.name,
            digest=digest(text),
            scopes=frozenset(asked.scopes),
            experiments=None if some is None else frozenset(some),
            rate=asked.rate,
        )
    except InvalidInput:
        detail = f"Scopes are of {', '.join(SCOPES)}; a rate is above 0."
        raise Refusal("invalid", detail=detail) from None


async def _body(request: Request) -> bytes:
    return await read_body(request.receive)


async def _object(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = _read(dict[str, Any], await _body(request))
    return found


def _read(kind: Any, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise (
            unreadable(error, kind) if hasattr(kind, "__struct_fields__") else Refusal("invalid")
        ) from None


def _json(value: Any, status: int = 200) -> Response:
    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def _short(view: View) -> dict[str, Any]:
    """For the list: without the past."""
    told = view.to_dict()
    del told["history"]
    return told


def _document_hot(app: FastAPI) -> None:
    """Put the two routes that are answered before FastAPI sees them into its OpenAPI document."""
    (asked, decided, given, noted), parts = msgspec.json.schema_components(
        [DecideRequest, DecideAnswer, RewardRequest, RewardAnswer],
        ref_template="#/components/schemas/{name}",
    )
    routes = {
        "/v1/experiments/{name}/decide": _operation(
            "Decide for somebody; needs the scope `decide`", asked, decided, ["name"]
        ),
        "/v1/reward": _operation("Say what somebody did; needs the scope `reward`", given, noted, []),
    }
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()
        document["paths"] |= routes
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas |= parts
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _operation(summary: str, asked: Any, answered: Any, path: list[str]) -> dict[str, Any]:
    def content(schema: Any) -> dict[str, Any]:
        return {"content": {"application/json": {"schema": schema}}}

    text = {"type": "string"}
    problem = {"description": "A problem (RFC 9457); its `type` says which."}
    return {
        "post": {
            "summary": summary,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": text} for name in path
            ],
            "requestBody": {"required": True, **content(asked)},
            "responses": {"200": {"description": "Answered", **content(answered)}, "default": problem},
        }
    }
