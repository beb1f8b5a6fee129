"""What the agreement tests ask: a real OPA with policies put into it, and small rules in each engine. Proves nothing.

OPA is asked over one kept connection, one query per document, as the gate would: `strict-builtin-errors`, and nothing
that answers many documents at once.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import regorus

from interlock.errors import EngineUnavailable
from interlock.policy.bundle import Bundle
from interlock.policy.embedded import ENTRYPOINT
from tests.servers import opa

UNDEFINED, ERROR = "undefined", "error"


class Opa:
    """A server and one connection to it."""

    def __init__(self, server: Any) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        self._loaded: list[str] = []
        self.data: bytes | None = None

    def _asked(self, method: str, path: str, body: bytes | None, kind: str = "application/json") -> tuple[int, bytes]:
        self._connection.request(method, path, body, {"Content-Type": kind})
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def policies(self, texts: dict[str, str], data: bytes = b"{}") -> str:
        """Put these policies and this data in the place of all others; the error, or nothing."""
        for name in self._loaded:
            self._asked("DELETE", f"/v1/policies/{name}", None)
        self._loaded = []
        status, said = self._asked("PUT", "/v1/data", data)
        assert status in (200, 204), said
        # A policy must not refer to what is not there yet, so files that others use come first.
        for place, name in enumerate(sorted(texts, key=lambda one: ("lib." not in texts[one], one))):
            status, said = self._asked("PUT", f"/v1/policies/p{place}", texts[name].encode(), "text/plain")
            if status != 200:
                return said.decode()
            self._loaded.append(f"p{place}")
        return ""

    def ask(self, path: str, document: bytes) -> bytes:
        """JSON text of an answer.

        Raises:
            EngineUnavailable: an error or undefined.
        """
        body = b'{"input":' + document + b"}"
        status, said = self._asked("POST", f"/v1/data/{path}?strict-builtin-errors", body)
        if status != 200:
            raise EngineUnavailable(f"{status}: {said[:300]!r}")
        # The text is cut out and not written anew: numbers stay as OPA wrote them. What follows it is a warning, when
        # the document is null, that there was none.
        text, prefix = said.decode(), '{"result":'
        if not text.startswith(prefix):
            raise EngineUnavailable(UNDEFINED)
        _, end = json.JSONDecoder().raw_decode(text, len(prefix))
        return text[len(prefix) : end].encode()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def asked_opa() -> Iterator[Opa]:
    with opa() as server:
        one = Opa(server)
        try:
            yield one
        finally:
            one.close()


class OpaEngine:
    """A bundle's policies, unchanged, in a real OPA. One server holds one bundle: the last that was asked is loaded."""

    name = "opa"
    looks_at = None

    def __init__(self, server: Opa, bundle: Bundle) -> None:
        self._server, self._bundle = server, bundle
        self.controls, self.revision = bundle.controls, bundle.revision

    def evaluate(self, document: bytes) -> bytes:
        if getattr(self._server, "bundle", "") != self.revision:
            texts = {one.path: one.text for one in self._bundle.sources}
            problem = self._server.policies(texts, self._bundle.data)
            assert not problem, problem
            self._server.bundle = self.revision  # type: ignore[attr-defined]
        return self._server.ask("interlock/entrypoint/answers", document)


class VirtualMachine:
    """The embedded engine's compiler and virtual machine: an opinion only, see ADR 0002."""

    name = "vm"
    looks_at = None

    def __init__(self, bundle: Bundle) -> None:
        self.controls, self.revision = bundle.controls, bundle.revision
        files = [(one.path, one.text) for one in bundle.sources]
        program = regorus.Program.compile_from_modules(bundle.data.decode(), files, [ENTRYPOINT])
        self._machine = regorus.Rvm()
        self._machine.load_program(program)
        self._machine.set_data_json(bundle.data.decode())

    def evaluate(self, document: bytes) -> str:
        try:
            self._machine.set_input_json(document.decode())
            answer: str = self._machine.execute()
        except (RuntimeError, ValueError) as error:
            raise EngineUnavailable(str(error).splitlines()[0]) from None
        return answer


class Regopy:
    """rego-cpp, by its Python binding: an opinion only, see ADR 0002."""

    name = "regopy"
    looks_at = None

    def __init__(self, bundle: Bundle) -> None:
        import regopy

        self.controls, self.revision = bundle.controls, bundle.revision
        self._errors = regopy.RegoError
        self._engine = regopy.Interpreter()
        self._engine.strict_built_in_errors = True
        for one in bundle.sources:
            self._engine.add_module(one.path, one.text)
        self._engine.add_data_json(bundle.data.decode())
        self._bundle = self._engine.build(f"answer={ENTRYPOINT}")

    def evaluate(self, document: bytes) -> str:
        try:
            self._engine.set_input_term(document.decode())
            output = self._engine.query_bundle(self._bundle)
            if not output.ok():
                raise EngineUnavailable(str(output))
            return str(output.binding("answer"))
        except (self._errors, ValueError, KeyError) as error:
            raise EngineUnavailable(str(error)) from None


def embedded_says(text: str, document: str) -> str:
    """What the embedded engine says of `data.controls.gap.r`: JSON text, `undefined` or `error`."""
    engine = regorus.Engine()
    try:
        engine.add_policy("gap.rego", text)
        engine.set_input_json(document)
        answer: str = engine.eval_rule_as_json("data.controls.gap.r")
    except BaseException as error:
        if not isinstance(error, (RuntimeError, ValueError)) and "Panic" not in type(error).__name__:
            raise
        return ERROR
    return UNDEFINED if json.loads(answer) == "<undefined>" else answer


def opa_says(server: Opa, text: str, document: str) -> str:
    """The same of OPA. What does not load is an error."""
    if server.policies({"gap.rego": text}):
        return ERROR
    server.bundle = ""  # type: ignore[attr-defined]
    try:
        return server.ask("controls/gap/r", document.encode()).decode()
    except EngineUnavailable as error:
        return UNDEFINED if str(error) == UNDEFINED else ERROR
