"""Tells a service of a question, signed, and takes its signed answer.

Nothing that the service *returns* counts: it answers by a call back with a signature of its own, or somebody answers
with ``interlock approvals``. Either way the answer stands in the journal before anything runs.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from interlock.approvals import signing
from interlock.approvals.elsewhere import Desk, Elsewhere
from interlock.errors import ApproverUnavailable, InterlockError, Misconfigured, Refused
from interlock.model.canonical import parse
from interlock.model.question import Answer, Question
from interlock.model.question_view import lines
from interlock.ports import Journal, Store

_LOGGER: Final = logging.getLogger("interlock")
MAX_ANSWER: Final = 64 << 10
TIMEOUT: Final = 10.0


class Webhook:
    """Implements :class:`interlock.ports.Approver`."""

    def __init__(self, url: str, secret: bytes, journal: Journal | Store, *, poll: float = 0.5) -> None:
        """
        Args:
            url: of the service; ``https``, or ``http`` on this machine.
            secret: shared with the service, at least 32 bytes.

        Raises:
            Misconfigured: the address or the secret is none.
            ImportError: the extra ``approvals`` is not installed.
        """
        _httpx()
        parts = urlsplit(url)
        here = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not (parts.scheme == "http" and here):
            raise Misconfigured(
                "approvals.url: https, or http on this machine; a question holds what a call would send"
            )
        self._url, self._secret = url, signing.strong(secret)
        self._elsewhere = Elsewhere(journal, poll=poll)
        self.server: CallbackServer | None = None

    def ask(self, question: Question, seconds: float) -> Answer | None:
        """See :meth:`interlock.ports.Approver.ask`.

        Raises:
            ApproverUnavailable: the service was not reached.
        """
        httpx = _httpx()
        body = announcement(question)
        until = time.monotonic() + seconds
        try:
            # No proxy of the environment and no redirect: it goes to the operator's address or nowhere.
            with httpx.Client(trust_env=False, follow_redirects=False, timeout=min(TIMEOUT, seconds)) as client:
                given = {"Content-Type": "application/json"}
                given |= signing.headers(self._secret, "question", time.time(), body)
                # Its body is not read: nothing that the service returns counts, however much or slow it is.
                with client.stream("POST", self._url, content=body, headers=given) as reply:
                    status = reply.status_code
        except httpx.HTTPError as error:
            raise ApproverUnavailable(f"the webhook was not reached ({type(error).__name__})") from None
        if not 200 <= status < 300:
            raise ApproverUnavailable(f"the webhook answered {status}")
        self._elsewhere.wait(question, until - time.monotonic())
        return None


def announcement(question: Question) -> bytes:
    """What the service is sent: the question for machines, and the same as escaped lines for people."""
    return json.dumps(
        {
            "schema": 1,
            "question": question.id,
            "digest": question.digest,
            "namespace": question.namespace,
            "conversation": question.conversation,
            "expires": question.expires,
            "lines": lines(question),
            "whole": json.loads(question.encode()),
        }
    ).encode()


def answer_body(question: Mapping[str, Any], verdict: str, by: str) -> bytes:
    """What a service signs and sends back: the words of an announcement that say which question, and the answer."""
    names = ("question", "digest", "namespace", "conversation")
    return json.dumps({"schema": 1, **{one: question[one] for one in names}, "answer": verdict, "by": by}).encode()


class Callbacks:
    """Takes signed answers. Mount :meth:`take` in a server of yours, or use :class:`CallbackServer`."""

    def __init__(self, secret: bytes, desk: Callable[[str], Desk], *, now: Callable[[], float] = time.time) -> None:
        """``desk``: the desk of a namespace. Raises Misconfigured: the secret is too short."""
        self._secret, self._desk, self._now = signing.strong(secret), desk, now

    def take(self, headers: Mapping[str, str], body: bytes) -> str:
        """Check one answer and journal it.

        Args:
            headers: by name; names are compared without regard to case.

        Returns:
            The status of the question: ``granted`` or ``refused``.

        Raises:
            Refused: not signed, too old, malformed, or about a question that is not open; nothing was written.
            Unavailable: it could not be written.
        """
        known = {name.casefold(): value for name, value in headers.items()}
        timestamp, given = (known.get(one.casefold(), "") for one in (signing.TIMESTAMP, signing.SIGNATURE))
        if len(body) > MAX_ANSWER:
            raise Refused("an answer is not that long")
        signing.check(self._secret, "answer", timestamp, given, body, self._now())
        answer = parse(body)
        keys = {"schema", "question", "digest", "namespace", "conversation", "answer", "by"}
        if not isinstance(answer, dict) or answer.keys() != keys or answer["schema"] != 1 or answer["schema"] is True:
            raise Refused(f"an answer is an object of schema 1 with {', '.join(sorted(keys))}")
        text = {name: value for name, value in answer.items() if isinstance(value, str)}
        if len(text) != len(keys) - 1 or text["answer"] not in ("approve", "refuse"):
            raise Refused("every part of an answer is a text, and the answer is approve or refuse")
        desk = self._desk(text["namespace"])
        question, _ = desk.find(text["question"])
        if (question.id, question.conversation, question.digest) != (
            text["question"],
            text["conversation"],
            text["digest"],
        ):
            raise Refused("the answer is about another question than the one that was asked")
        return desk.answer(question, text["answer"], f"{text['by']} by webhook").status.value


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the standard library's
        """A caller that hangs up is nothing to print: standard error belongs to the host."""
        _LOGGER.warning("a request for answers failed: %s", type(sys.exception()).__name__)


class CallbackServer:
    """A small server for answers: ``POST`` of one at any path. Put a proxy with TLS before it when it leaves the
    machine; the signature keeps answers genuine, not private."""

    def __init__(self, callbacks: Callbacks, host: str = "127.0.0.1", port: int = 0) -> None:
        """Raises Misconfigured: the address can't be listened at."""

        class Handler(BaseHTTPRequestHandler):
            timeout = TIMEOUT

            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                if not (length.isascii() and length.isdigit() and len(length) < 9) or int(length) > MAX_ANSWER:
                    self._reply(413, "too long")
                    return
                body = self.rfile.read(int(length))
                try:
                    self._reply(200, callbacks.take(dict(self.headers.items()), body))
                except Refused as error:
                    self._reply(403, str(error))
                except InterlockError:
                    self._reply(503, "not recorded; send it again")

            def _reply(self, status: int, text: str) -> None:
                data = json.dumps({"status": text}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Standard error belongs to the host."""

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise Misconfigured(f"approvals.listen: {host}:{port}: {error.strerror}") from None
        self._thread = Thread(target=self._server.serve_forever, name="interlock-callbacks", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ImportError("a webhook needs httpx: pip install interlock[approvals]") from None
    return httpx
