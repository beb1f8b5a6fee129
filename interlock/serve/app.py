"""The application: what is asked where, and the way of one request.

Credentials, then size, then shape, then a thread. Whatever fails on that way is answered in the shape of a denial, and
logged without a value of the request.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from interlock.serve import authzen, shapes
from interlock.serve.callers import Caller, Callers, Right
from interlock.serve.desk import Desk
from interlock.serve.log import log
from interlock.serve.openapi import documented
from interlock.serve.problems import Problem
from interlock.serve.ready import Readiness
from interlock.serve.told import translated
from interlock.serve.work import Limits, Work, late

Message: TypeAlias = MutableMapping[str, Any]
Asgi: TypeAlias = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

# No credentials that could be known, and none of a certificate instead.
_UNKNOWABLE: Final = "?"
_SAFE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:")


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be asked.

    Attributes:
        asked: shape of the body; None when there is none.
        told: shape of the answer.
        answer: ``(desk, caller, path parameters, body) -> answer``.
        changes: does it write? Then it is a POST.
    """

    name: str
    method: str
    path: str
    summary: str
    asked: type[shapes.Shape] | None
    told: type[shapes.Shape]
    answer: Callable[[Desk, Caller, dict[str, str], Any], dict[str, Any]]
    status: int = 200
    right: Right = "decide"


_ONE: Final = "/v1/conversations/{conversation}"

OPERATIONS: Final = (
    Operation(
        "begin",
        "POST",
        "/v1/conversations",
        "Begin a conversation.",
        shapes.Begin,
        shapes.Begun,
        lambda desk, caller, _, body: desk.begin(caller, body),
        201,
    ),
    Operation(
        "inspect",
        "GET",
        _ONE,
        "What has entered a conversation, and what is under way.",
        None,
        shapes.Inspected,
        lambda desk, caller, at, _: desk.inspect(caller, at["conversation"]),
    ),
    Operation(
        "resume",
        "POST",
        f"{_ONE}/resume",
        "Take a conversation up again.",
        shapes.Resume,
        shapes.Begun,
        lambda desk, caller, at, body: desk.resume(caller, at["conversation"], body),
    ),
    Operation(
        "fork",
        "POST",
        f"{_ONE}/fork",
        "Begin another conversation with everything that this one holds.",
        shapes.Nothing,
        shapes.Begun,
        lambda desk, caller, at, _: desk.fork(caller, at["conversation"]),
        201,
    ),
    Operation(
        "propose",
        "POST",
        f"{_ONE}/calls",
        "Decide the calls of one turn. Run a call if `run` is true, and never otherwise.",
        shapes.Propose,
        shapes.Proposed,
        lambda desk, caller, at, body: desk.propose(caller, at["conversation"], body.calls),
    ),
    Operation(
        "explain",
        "GET",
        f"{_ONE}/calls/{{call:path}}",
        "A decision as the journal has it, and what came of the call.",
        None,
        shapes.Recorded,
        lambda desk, caller, at, _: desk.explain(caller, at["conversation"], at["call"]),
    ),
    Operation(
        "observe",
        "POST",
        f"{_ONE}/outcomes",
        "Report what came of an allowed call. The model may see `for_model`, and nothing else of the result.",
        shapes.Observe,
        shapes.Observed,
        lambda desk, caller, at, body: desk.observe(caller, at["conversation"], body),
    ),
    Operation(
        "preview",
        "POST",
        f"{_ONE}/preview",
        "What would be decided now. Nothing is recorded, and `run` is always false.",
        shapes.Propose,
        shapes.Proposed,
        lambda desk, caller, at, body: desk.preview(caller, at["conversation"], body.calls),
    ),
    Operation(
        "admit",
        "POST",
        f"{_ONE}/admitted",
        "Let content enter that no tool brought, before the model sees it.",
        shapes.Admit,
        shapes.Admitted,
        lambda desk, caller, at, body: desk.admit(caller, at["conversation"], body),
    ),
    Operation(
        "say",
        "POST",
        f"{_ONE}/typed",
        "Text that the person typed. It vouches for the destinations in it.",
        shapes.Say,
        shapes.Admitted,
        lambda desk, caller, at, body: desk.say(caller, at["conversation"], body),
        200,
        "speak",
    ),
    Operation(
        "evaluation",
        "POST",
        "/access/v1/evaluation",
        "AuthZEN: may this call run?",
        authzen.Evaluation,
        authzen.EvaluationAnswer,
        lambda desk, caller, _, body: authzen.evaluated(_problems(desk.propose), caller, body),
    ),
    Operation(
        "evaluations",
        "POST",
        "/access/v1/evaluations",
        "AuthZEN: may these calls run?",
        authzen.Evaluations,
        authzen.EvaluationsAnswer,
        lambda desk, caller, _, body: authzen.all_evaluated(_problems(desk.propose), caller, body),
    ),
)


def _problems(ask: authzen.Ask) -> authzen.Ask:
    def translating(caller: Caller, conversation: str, calls: Any) -> dict[str, Any]:
        try:
            return ask(caller, conversation, calls)
        except Exception as error:  # as a denial of this conversation alone, if it is one
            raise translated(error) from error

    return translating


class Door:
    """The way of one request, from its head to its answer."""

    def __init__(self, desk: Desk, callers: Callers, limits: Limits) -> None:
        self.desk = desk
        self.callers = callers
        self.limits = limits
        self.work = Work(limits, desk.meters)
        self.ready = Readiness(desk.lock)
        self._probes = ThreadPoolExecutor(1, thread_name_prefix="interlock-probe")

    async def answer(self, operation: Operation, request: Request) -> Response:
        """Answer a request, whatever happens."""
        began = time.monotonic()
        until = began + self.limits.deadline
        name, principal, unread = _request_id(request), "", operation.asked is not None
        try:
            caller = self._caller(request, operation.right)
            principal = caller.principal
            raw = b"" if operation.asked is None else await self._body(request, until)
            unread = False
            at = dict(request.path_params)
            # Read in the thread too: a mebibyte of brackets must not hold up everybody else.
            told = await self.work.run(principal, until, lambda: self._work(operation, caller, at, raw))
            status, payload, retry = operation.status, told, 0
        except Exception as error:  # a bug of ours too: its answer is a denial, and the log says where
            status, payload, retry = self._failed(error, name)
        response = self._told(operation.name, name, principal, began, status, payload, retry)
        if unread:  # what still comes of the body is not waited for
            response.headers["Connection"] = "close"
        return response

    def _work(self, operation: Operation, caller: Caller, at: dict[str, str], raw: bytes) -> dict[str, Any]:
        body = None if operation.asked is None else shapes.read(operation.asked, raw)
        return operation.answer(self.desk, caller, at, body)

    async def metrics(self, request: Request) -> Response:
        """What Prometheus reads."""
        began, name, principal = time.monotonic(), _request_id(request), ""
        try:
            principal = self._caller(request, "metrics").principal
        except Problem as problem:
            return self._told("metrics", name, principal, began, *self._failed(problem, name))
        return Response(self.desk.meters.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self) -> Response:
        """Alive: it answers."""
        return _json({"status": "ok"}, 200)

    async def readiness(self) -> Response:
        """Able to decide: the engine answers a document, the store can be reached, and somebody may ask."""
        loop = asyncio.get_running_loop()
        try:
            told = await asyncio.wait_for(loop.run_in_executor(self._probes, self.ready.now), self.limits.deadline)
        except Exception:
            told = {"ready": False, "engine": "silent", "store": "silent"}
        if not self.callers.now():
            told = {**told, "ready": False}
        return _json(told, 200 if told["ready"] else 503)

    def close(self) -> None:
        """Wait for what has begun."""
        self.work.close()
        self._probes.shutdown(wait=True, cancel_futures=True)

    # --- steps of the way -------------------------------------------------------------------------------------------

    def _caller(self, request: Request, right: Right) -> Caller:
        token = ""
        given = request.headers.getlist("authorization")
        if given:
            scheme, _, token = given[0].partition(" ")
            if len(given) > 1 or scheme.lower() != "bearer" or not token:
                token = _UNKNOWABLE
        subject = getattr(request.state, "subject", "")
        caller = self.callers.known_by(token, subject if isinstance(subject, str) else "")
        if caller is None:
            self.desk.meters.turned_away.labels("unknown_caller").inc()
            if self.callers.problem:
                raise Problem(503, "misconfigured", "nobody can be known at present; the log says why", retry_after=5)
            raise Problem(401, "unknown_caller", "send the bearer token, or the certificate, of a known caller")
        if right not in caller.rights:
            self.desk.meters.turned_away.labels("no_right").inc()
            raise Problem(403, "no_right", f"these credentials do not have the right `{right}`")
        return caller

    async def _body(self, request: Request, until: float) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, "not_json", "send application/json")
        length = request.headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > self.limits.body:
            raise self._too_large()
        found = bytearray()
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + until - time.monotonic()):
                async for part in request.stream():
                    found += part
                    if len(found) > self.limits.body:
                        raise self._too_large()
        except TimeoutError:
            self.desk.meters.turned_away.labels("deadline").inc()
            raise late() from None
        except ClientDisconnect:
            raise Problem(400, "gone", "the request ended before its body") from None
        return bytes(found)

    def _too_large(self) -> Problem:
        self.desk.meters.turned_away.labels("too_large").inc()
        return Problem(413, "too_large", f"a request takes at most {self.limits.body} bytes")

    def _failed(self, error: Exception, name: str) -> tuple[int, dict[str, Any], int]:
        problem = translated(error)
        if problem.status >= 500 and not isinstance(error, Problem):
            # Where, and of which kind; never what it says, which may hold values of the request.
            log().warning("failed", request=name, error=problem.error, kind=type(error).__name__, at=_place(error))
        return problem.status, problem.body(name), problem.retry_after

    def _told(
        self, operation: str, name: str, principal: str, began: float, status: int, payload: Any, retry: int
    ) -> Response:
        seconds = time.monotonic() - began
        self.desk.meters.requests.labels(operation, str(status)).inc()
        self.desk.meters.request_seconds.labels(operation).observe(seconds)
        log().info(
            "answered", request=name, operation=operation, status=status, caller=principal, ms=round(seconds * 1e3, 2)
        )
        response = _json(payload, status)
        response.headers["X-Request-ID"] = name
        if retry:
            response.headers["Retry-After"] = str(retry)
        if status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response


def _json(payload: Any, status: int) -> Response:
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(body, status, media_type="application/json", headers={"Cache-Control": "no-store"})


def _request_id(request: Request) -> str:
    """The caller's own id of the request, if it is harmless in a log; else one of ours."""
    given = request.headers.get("x-request-id", "")
    return given if 0 < len(given) <= 128 and _SAFE.issuperset(given) else f"r-{secrets.token_hex(8)}"


def _place(error: BaseException) -> str:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_globals.get('__name__', '?')}:{last.tb_lineno}"


def application(desk: Desk, callers: Callers, limits: Limits) -> FastAPI:
    """The application for a desk. When it is shut down, what has begun is finished."""
    door = Door(desk, callers, limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.get_running_loop().run_in_executor(None, door.close)

    app = FastAPI(
        title="Interlock",
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.door = door
    for operation in OPERATIONS:
        app.add_api_route(operation.path, _endpoint(door, operation), methods=[operation.method], name=operation.name)
    app.add_api_route("/metrics", door.metrics, methods=["GET"], name="metrics")
    app.add_api_route("/health", door.health, methods=["GET"], name="health")
    app.add_api_route("/ready", door.readiness, methods=["GET"], name="ready")

    async def lost(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        word = {404: "not_found", 405: "wrong_method"}.get(status, "refused")
        name = _request_id(request)
        return door._told("(none)", name, "", time.monotonic(), *door._failed(Problem(status, word, _LOST), name))

    app.add_exception_handler(HTTPException, lost)
    app.openapi = lambda: documented(OPERATIONS)  # type: ignore[method-assign]  # FastAPI's way to replace it
    return app


_LOST: Final = "there is no such thing here; /openapi.json says what there is"


def _endpoint(door: Door, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await door.answer(operation, request)

    return endpoint
