"""An OPA server as the engine: one query per decision, and no way in which it can misbehave allows anything.

The bundle says which controls must answer and what people are told about them; the server decides. Everything between
the question and an answer that was read strictly lies within one deadline: names, connections, handshakes, retries,
each byte. Asked in a thread of its own (:mod:`interlock.policy.courier`), so that holds for synchronous callers too.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from interlock.errors import EngineUnavailable
from interlock.model.answers import Answered, ControlText, parse_answers
from interlock.model.canonical import Json, pack, unpack
from interlock.model.look import Paths
from interlock.policy.bundle import Bundle
from interlock.policy.courier import courier, finish
from interlock.policy.opa_client import OpaServer, StrictOpaClient
from interlock.policy.opa_faults import AGAIN, OUT, Fault, NoAnswer
from interlock.policy.resilience import Breaker, BreakerState, RetryBudget, pause
from interlock.policy.revisions import Demand, well_formed

# The courier gives up at the deadline; who waits for it does so a little later, should the courier itself be held up.
GRACE: Final = 0.03

Said = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long, how often, how many.

    Attributes:
        deadline: seconds for one decision, over everything.
        retries: at most so many further attempts within it.
        breaker_failures: decisions in a row without an answer, after which nobody asks for ``breaker_seconds``.
    """

    deadline: float = 1.0
    retries: int = 2
    breaker_failures: int = 5
    breaker_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Contract:
    """What an answer must bring along to count.

    Attributes:
        demand: which revision must have answered.
        bundle: name of the bundle on the server, needed where it has several.
        decision_log: an answer without a ``decision_id``, which nobody logged, does not count.
    """

    demand: Demand = field(default_factory=Demand)
    bundle: str = ""
    decision_log: bool = False


class OpaEngine:
    """Implements :class:`interlock.ports.Engine`, and its asynchronous door."""

    name: Final = "opa"
    # The policies behind the server may change while a document does not, so nothing is remembered.
    looks_at: Paths | None = None

    def __init__(
        self,
        bundle: Bundle,
        server: OpaServer,
        *,
        contract: Contract | None = None,
        limits: Limits | None = None,
        said: Said | None = None,
    ) -> None:
        """Connects to nothing: a server that is out denies, it does not keep an agent from starting.

        Args:
            bundle: the controls that must answer. The server's answers for them count, not the bundle's rules.
            said: told the kind and the text of everything that is no answer; in the courier's thread.
        """
        self.bundle = bundle
        self.revision: str = bundle.revision
        self.controls: Mapping[str, ControlText] = bundle.controls
        self.server = server
        self._limits = limits or Limits()
        self._line = _Line(server, contract or Contract(), self._limits, bundle.controls, said or _unheard)
        # When nobody uses it any more, after a reload above all; and at the interpreter's exit.
        weakref.finalize(self, _Line.hang_up, self._line)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often what happened since the start: ``answered``, ``retried``, ``opened`` and every kind of fault."""
        return dict(self._line.counts)

    @property
    def breaker(self) -> BreakerState:
        return self._line.breaker.state

    @property
    def demand(self) -> Demand:
        """Which revision must answer."""
        return self._line.contract.demand

    @property
    def trusted(self) -> bool:
        """False from any word of the server's that did not count, until it answers a later question well."""
        return self._line.trusted

    @property
    def version(self) -> str:
        """Of OPA, as it last said; empty before any answer."""
        return self._line.version

    def note(self, what: str) -> None:
        """Count something beside the answers and faults."""
        courier().loop.call_soon_threadsafe(self._line.count, what)

    def evaluate(self, document: bytes) -> Answered:
        """See :meth:`interlock.ports.Engine.evaluate`. Returns within the deadline plus a few milliseconds."""
        future = self._begun(document)
        try:
            return future.result(self._limits.deadline + GRACE)
        except TimeoutError:
            # Not cancelled: the courier finds out by itself that it is late, and counts it.
            raise self._late() from None

    async def aevaluate(self, document: bytes) -> Answered:
        """The same without blocking the loop. Cancelling it gives the question up."""
        future = self._begun(document)
        waiting = asyncio.wrap_future(future)
        try:
            ended, _ = await asyncio.wait([waiting], timeout=self._limits.deadline + GRACE)
        except BaseException:
            future.cancel()
            raise
        if not ended:
            waiting.add_done_callback(_seen)
            raise self._late()
        return waiting.result()

    def close(self) -> None:
        """Close the connections. The engine may be asked again; it then opens new ones."""
        self._line.hang_up()

    def _begun(self, document: bytes) -> Future[Answered]:
        try:
            unpack(document)
        except ValueError:
            raise NoAnswer(Fault.DOCUMENT, "the document is not JSON, so the server was not asked") from None
        return self._line.begin(document)

    def _late(self) -> NoAnswer:
        return NoAnswer(Fault.DEADLINE, f"OPA at {self.server.url}: no answer within {self._limits.deadline:g} s")


def _seen(future: asyncio.Future[Answered]) -> None:
    """What nobody waits for any more may fail: asyncio would complain that nobody looked."""
    if not future.cancelled():
        future.exception()


def _unheard(kind: str, problem: str) -> None:
    """Nobody listens; the counters still count."""


class _Trust:
    """Questions and words that did not count, numbered in one sequence. An answer restores trust only when its question
    is younger than the last such word: of two that overlap, nobody knows which of them is true now."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.answered = self.doubted = 0


# By whom is asked for what: an engine that a reload puts in the place of another has heard what that one heard.
_TRUST: Final = weakref.WeakValueDictionary[tuple[str, str, Contract], _Trust]()


class _Line:
    """What the courier's thread knows about one server: everything here but ``begin`` and ``hang_up`` runs there."""

    def __init__(
        self, server: OpaServer, contract: Contract, limits: Limits, controls: Mapping[str, ControlText], said: Said
    ) -> None:
        self._server, self.contract, self._limits, self._controls = server, contract, limits, controls
        self._said = said
        self.counts: dict[str, int] = {}
        self.version = ""
        self._trust = _TRUST.setdefault((server.url, server.entrypoint, contract), _Trust())
        self._fresh()

    def _fresh(self) -> None:
        self._pid = os.getpid()
        self._client = StrictOpaClient(self._server)
        self.breaker = Breaker(self._limits.breaker_failures, self._limits.breaker_seconds)
        self._budget = RetryBudget()

    def begin(self, document: bytes) -> Future[Answered]:
        if self._pid != os.getpid():
            # A forked child: the connections are its parent's, and closing them here would end them there.
            _ORPHANS.append(self._client)
            self._fresh()
        due = time.monotonic() + self._limits.deadline
        return courier().carry(self._answered(next(self._trust.numbers), document, due))

    def hang_up(self) -> None:
        """Close the connections, from any thread."""
        if self._pid == os.getpid() and self._client.is_open:
            client, self._client = self._client, StrictOpaClient(self._server)
            finish(client.close_connection())

    @property
    def trusted(self) -> bool:
        """Nothing that did not count was heard since a question that was answered well, also by nobody's ear."""
        return self._trust.answered >= self._trust.doubted

    def answered(self, number: int) -> None:
        self._trust.answered = max(self._trust.answered, number)

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def _answered(self, number: int, document: bytes, due: float) -> Answered:
        """One decision: through the breaker, within the deadline, counted.

        Raises:
            NoAnswer: no answer that counts; its text says where it was looked for.
        """
        try:
            answer = await self._admitted(document, due)
        except NoAnswer as error:
            if error.fault not in OUT:
                self._trust.doubted = next(self._trust.numbers)
            problem = f"OPA at {self._server.url}: {error}"
            self.count(error.kind)
            self._said(error.kind, problem)
            raise NoAnswer(error.fault, problem) from None
        self.answered(number)
        self.count("answered")
        return answer

    async def _admitted(self, document: bytes, due: float) -> Answered:
        admitted = self.breaker.admit(time.monotonic())
        if admitted is None:
            raise NoAnswer(Fault.BREAKER_OPEN, "it did not answer lately and is left alone for a while")
        try:
            try:
                async with asyncio.timeout(due - time.monotonic()):
                    answer = await self._attempts(document, due)
            except TimeoutError:
                raise NoAnswer(Fault.DEADLINE, f"no answer within {self._limits.deadline:g} s") from None
        except NoAnswer as error:
            if error.fault not in OUT:
                self.breaker.answered(admitted)  # somebody is there; what it says is another matter
            elif self.breaker.failed(admitted, time.monotonic()):
                self.count("opened")
            raise
        except BaseException:
            self.breaker.abandoned(admitted, time.monotonic())
            raise
        self.breaker.answered(admitted)
        self._budget.answered()
        return answer

    async def _attempts(self, document: bytes, due: float) -> Answered:
        attempt = 0
        while True:
            try:
                return self._counting(await self._client.ask(document))
            except NoAnswer as error:
                attempt += 1
                wait = max(pause(attempt), error.after)
                again = error.fault in AGAIN and self._budget.failed()
                # What could not be answered in time any more is not asked: it would only burden the server.
                if not again or attempt > self._limits.retries or time.monotonic() + wait >= due:
                    raise
            self.count("retried")
            await asyncio.sleep(wait)

    def _counting(self, envelope: Mapping[str, Json]) -> Answered:
        """The answer in an envelope, if it counts: from the right revision, logged, one answer per control."""
        revision = self._revision(envelope.get("provenance", {}))
        decision_id = envelope.get("decision_id", "")
        if not isinstance(decision_id, str) or (decision_id and not well_formed(decision_id)):
            raise NoAnswer(Fault.MALFORMED_ANSWER, "its decision_id is no short text")
        if self.contract.decision_log and not decision_id:
            raise NoAnswer(Fault.NO_DECISION_ID, "its answer has no decision_id, so it keeps no decision log")
        text = pack(envelope["result"]).decode()
        try:
            parse_answers(text, self._controls)
        except EngineUnavailable as error:
            raise NoAnswer(Fault.MALFORMED_ANSWER, str(error)) from None
        return Answered(text, engine=OpaEngine.name, revision=revision, decision_id=decision_id)

    def _revision(self, provenance: Json) -> str:
        """What the server says about itself. Raises EngineUnavailable when that is not what is demanded."""
        bundles = provenance.get("bundles", {}) if isinstance(provenance, dict) else None
        if not isinstance(provenance, dict) or not isinstance(bundles, dict):
            raise NoAnswer(Fault.MALFORMED_ANSWER, "its provenance is not what OPA says")
        version = provenance.get("version", "")
        self.version = str(version) if well_formed(version) else ""
        demand, name = self.contract.demand, self.contract.bundle
        if not name and len(bundles) > 1:
            raise NoAnswer(
                Fault.NO_REVISION, f"it has {len(bundles)} bundles: name the one that is meant (engine.bundle)"
            )
        one = bundles.get(name) if name else next(iter(bundles.values()), None)
        said = one.get("revision", "") if isinstance(one, dict) else ""
        if said != "" and not well_formed(said):
            raise NoAnswer(Fault.MALFORMED_ANSWER, "the revision of its bundle is no short text")
        revision = str(said)
        if not revision and (name or demand != Demand()):
            raise NoAnswer(Fault.NO_REVISION, f"it reports no revision of a bundle{f' {name!r}' if name else ''}")
        if not demand.met_by(revision):
            raise NoAnswer(Fault.WRONG_REVISION, f"revision {revision!r} answers, and {demand} is demanded")
        return revision


_ORPHANS: list[StrictOpaClient] = []
