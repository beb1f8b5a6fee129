"""Two drivers for one set of steps: they answer effects, and differ by one ``await`` (T14)."""

from __future__ import annotations

import contextvars
import inspect
import os
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from interlock.errors import (
    ApproverUnavailable,
    Bug,
    EngineUnavailable,
    InterlockError,
    JournalUnavailable,
    MemoryUnavailable,
    OutboxUnavailable,
    Refused,
)
from interlock.gate.effects import (
    Append,
    AskPerson,
    DropDraft,
    DropQuestion,
    Effect,
    Evaluate,
    Execute,
    KeepDraft,
    KeepQuestion,
    LabelArtifacts,
    LoadState,
    Raised,
    ReadArtifacts,
    ReadClock,
    ReadDraft,
    ReadOperands,
    ReadPages,
    ResolvePaths,
    Returned,
)
from interlock.gate.permits import Permit, executing
from interlock.locks import LOCK
from interlock.model.carried import LOST, Carried, written_by
from interlock.model.operands import Operand, Sort
from interlock.model.question import Answer
from interlock.model.results import Allowed, ToolResult, finished
from interlock.model.state import State
from interlock.ports import Approver, Artifacts, Clock, DraftStore, Engine, Files, Journal, Operands, Questions, Store

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
MAX_WRITERS: Final = 32
MAX_REMEMBERED: Final = 4096
MAX_PAGES: Final = 256
Run = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class World:
    """The ports that effects are answered from. Foreign exceptions are translated here, at the border.

    Without ``artifacts`` whatever is read is a lost record, and nothing that would need a label is written. ``pages``
    is what calls of the conversation read, by number, for people. Without ``operands`` no file can be read, without
    ``approver`` nobody answers here, without ``questions`` nobody can answer elsewhere, and without ``drafts`` nothing
    can be drafted.
    """

    engine: Engine
    journal: Journal | Store
    clock: Clock
    files: Files
    remembered: dict[bytes, str | bytes] = field(default_factory=dict)
    artifacts: Artifacts | None = None
    pages: dict[int, str] = field(default_factory=dict)
    operands: Operands | None = None
    approver: Approver | None = None
    questions: Questions | None = None
    drafts: DraftStore | None = None

    def answer(self, effect: Effect) -> Any:
        """The reply to any effect but :class:`Execute`; an awaitable if the engine gave one.

        Raises:
            InterlockError: the port failed.
        """
        try:
            match effect:
                case Evaluate(document=document, look=look):
                    return self.engine.evaluate(document) if look is None else self._remembering(document, look)
                case LoadState(conversation=conversation):
                    return self._ledger.state(conversation)
                case Append(conversation=conversation, entries=entries, expected=expected, pages=pages):
                    for number, page in pages:
                        note(self.pages, number, page)  # before: whoever is told of the entries may ask
                    return self._ledger.append(conversation, entries, expected=expected)
                case ReadClock():
                    return self.clock.now()
                case ResolvePaths(paths=paths):
                    return self.files.resolve(paths)
                case ReadArtifacts(keys=keys, namespace=namespace):
                    return LOST if self.artifacts is None else self.artifacts.carried(keys, namespace=namespace)
                case LabelArtifacts():
                    return self._label(effect)
                case ReadOperands(paths=paths):
                    if self.operands is None:
                        return tuple(Operand(one, "", Sort.UNREADABLE) for one in paths)
                    return self.operands.operands(paths)
                case ReadPages(numbers=numbers):
                    return tuple((one, self.pages[one]) for one in numbers if one in self.pages)
                case KeepQuestion(question=question):
                    return None if self.questions is None else self.questions.keep(question)
                case DropQuestion(namespace=namespace, conversation=conversation, question=name):
                    return None if self.questions is None else self.questions.drop(namespace, conversation, name)
                case KeepDraft() | ReadDraft() | DropDraft():
                    return self._drafts(effect)
                case AskPerson(question=question, seconds=seconds):
                    if self.approver is None:
                        raise ApproverUnavailable("no channel to a person is configured")
                    return self.approver.ask(question, seconds)
                case _:
                    raise Bug(f"no port answers {type(effect).__name__}")
        except BaseException as error:
            translated = _translated(effect, error)
            if translated is error:
                raise  # as it is: an error must not become its own cause
            raise translated from error

    def begun(self, effect: Effect) -> Any:
        """Like :meth:`answer`, for callers that can await: an engine with an asynchronous door is asked there. What may
        be remembered is not: it is asked by the door that remembers."""
        door = getattr(self.engine, "aevaluate", None)
        if door is None or not isinstance(effect, Evaluate) or effect.look is not None:
            return self.answer(effect)
        try:
            return door(effect.document)
        except BaseException as error:
            translated = _translated(effect, error)
            if translated is error:
                raise
            raise translated from error

    def _drafts(self, effect: KeepDraft | ReadDraft | DropDraft) -> Any:
        if self.drafts is None:
            raise OutboxUnavailable("there is no outbox here")
        match effect:
            case KeepDraft(draft=draft):
                return self.drafts.keep(draft)
            case ReadDraft(namespace=namespace, conversation=conversation, draft=name):
                return self.drafts.draft(namespace, conversation, name)
            case DropDraft(namespace=namespace, conversation=conversation, draft=name):
                return self.drafts.drop(namespace, conversation, name)

    @property
    def _ledger(self) -> Journal:
        return cast(Journal, self.journal)  # the world of a guard is over its conversation's own ledger

    def waits(self, effect: Effect) -> bool:
        """Does the answer wait for a disk or a server? Then it must not be had in an event loop's own thread."""
        if isinstance(effect, ReadArtifacts | LabelArtifacts):
            return getattr(self.artifacts, "blocks", False) is True
        if isinstance(effect, AskPerson):
            return self.approver is not None and not inspect.iscoroutinefunction(self.approver.ask)
        if isinstance(effect, ReadOperands):
            return self.operands is not None and not inspect.iscoroutinefunction(self.operands.operands)
        if isinstance(effect, KeepQuestion | DropQuestion):
            return getattr(self.questions, "blocks", False) is True
        if isinstance(effect, KeepDraft | ReadDraft | DropDraft):
            return getattr(self.drafts, "blocks", False) is True
        return isinstance(effect, LoadState | Append) and getattr(self.journal, "blocks", False) is True

    def over(self, journal: Journal, pages: dict[int, str] | None = None) -> World:
        """The same world with another journal; what was remembered is shared."""
        return replace(self, journal=journal, pages=self.pages if pages is None else pages)

    def _label(self, effect: LabelArtifacts) -> Any:
        if self.artifacts is None:
            raise MemoryUnavailable("there is no record of artifacts, so nothing may be written to one")
        state = effect.state
        voices, anybody = state.heard()
        carried = written_by(state.conversation, state.exposure, voices, anybody, self.pages)
        return self.artifacts.label(effect.keys, carried.join(effect.more), namespace=state.namespace)

    def _remembering(self, document: bytes, look: bytes) -> Any:
        """Only answers that were given are kept, never a failure. The table is bounded, and dies with the engine."""
        known = self.remembered.get(look)
        if known is not None:
            return known
        answer = self.engine.evaluate(document)
        if isinstance(answer, str | bytes):
            if len(self.remembered) >= MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[look] = answer
        return answer


def note(pages: dict[int, str], number: int, page: str) -> None:
    """Remember what a call read, for people; of many calls the newest."""
    if page:
        pages[number] = page
        if len(pages) > 2 * MAX_PAGES:  # now and then, since sorting takes longer than the rest
            for old in sorted(pages)[:-MAX_PAGES]:
                del pages[old]


# What may pass: our own errors, and what ends an interpreter.
_PASSING: Final = (InterlockError, Bug, KeyboardInterrupt, SystemExit, GeneratorExit)


def _ends_a_task(error: BaseException) -> bool:
    """Was a task cancelled? asyncio is not imported for this: where it is not loaded, there is no task."""
    loaded = sys.modules.get("asyncio")
    return loaded is not None and isinstance(error, loaded.CancelledError)


def _checked(effect: Effect, reply: Any) -> Any:
    """A reply of the wrong kind is a port that did not do its work, above all a coroutine that nobody awaited."""
    match effect:
        case LoadState() | Append():
            wanted: tuple[type, ...] = (State,)
        case Evaluate():
            wanted = (str, bytes)
        case ReadClock():
            wanted = (datetime,)
        case ReadArtifacts():
            wanted = (Carried,)
        case LabelArtifacts() | KeepQuestion() | DropQuestion() | KeepDraft() | DropDraft():
            wanted = (type(None),)
        case ReadDraft():
            wanted = (bytes, type(None))
        case AskPerson():
            wanted = (Answer, type(None))
        case _:
            wanted = (tuple,)
    if isinstance(reply, wanted):
        return reply
    if inspect.iscoroutine(reply):
        reply.close()
    raise _translated(effect, TypeError())


def _translated(effect: Effect, error: BaseException) -> BaseException:
    if isinstance(error, _PASSING) or _ends_a_task(error):
        return error
    if isinstance(effect, Evaluate):
        return EngineUnavailable(f"the engine raised {type(error).__name__}")
    if isinstance(effect, AskPerson | KeepQuestion | DropQuestion):
        return ApproverUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")
    if isinstance(effect, KeepDraft | ReadDraft | DropDraft):
        return OutboxUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")
    if isinstance(effect, ReadArtifacts | LabelArtifacts):
        return MemoryUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")
    return JournalUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")


def drive(steps: Generator[Effect, Any, T], world: World, run: Run | None = None) -> T:
    """Run steps to their end, synchronously.

    Args:
        run: ``run(name, arguments)`` executes a tool; None when the steps execute nothing.
    """
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, Execute):
                    reply = execute(effect.allowed, run)
                else:
                    reply = _checked(effect, world.answer(effect))
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(steps: Generator[Effect, Any, T], world: World, run: Run | None = None) -> T:
    """Run steps to their end, awaiting what must be awaited. Same effects, same order.

    A coroutine that is closed instead of cancelled can await nothing more. What is then still to be put on record is
    put there by the thread that closes it.
    """
    closed = False
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, Execute):
                    reply = await aexecute(effect.allowed, run)
                elif world.waits(effect) and not closed:
                    reply = _checked(effect, await _elsewhere(world, effect))
                else:
                    # One that is closed can await nothing: its engine is asked by the door for callers that wait.
                    reply = world.answer(effect) if closed else world.begun(effect)
                    if inspect.isawaitable(reply) and not closed:
                        reply = await _translating(effect, reply)
                    reply = _checked(effect, reply)
            except BaseException as error:
                closed = closed or isinstance(error, GeneratorExit)
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def _elsewhere(world: World, effect: Effect) -> Any:
    """In a worker thread. A task that is cancelled meanwhile leaves the write to finish: what it wrote stands.

    The threads are the journal's own: those of the loop may all be taken by tools that take a minute, or that wait for
    a guarded call of theirs.
    """
    import asyncio  # loaded already: this runs in its loop

    if isinstance(effect, AskPerson):
        return await _in_a_thread_of_its_own(world, effect)
    answer = partial(contextvars.copy_context().run, world.answer, effect)
    # Shielded: one that still waits for a thread would be dropped otherwise, and with it the outcome of a call.
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(_writers(), answer))


_WRITERS: Final[dict[int, ThreadPoolExecutor]] = {}  # by process: a fork has none of its parent's threads


def _writers() -> ThreadPoolExecutor:
    found = _WRITERS.get(os.getpid())
    if found is None:
        from concurrent.futures import ThreadPoolExecutor  # loaded late: a journal in memory needs none

        with LOCK:
            found = _WRITERS.get(os.getpid())
            if found is None:
                found = _WRITERS[os.getpid()] = ThreadPoolExecutor(MAX_WRITERS, "interlock-journal")
    return found


async def _in_a_thread_of_its_own(world: World, effect: Effect) -> Any:
    """Whoever waits for a person does so for minutes: a few of them would take all workers of the loop, which journals
    need, and a loop that is left waits for its workers. Nobody waits for this thread once its task is cancelled."""
    import asyncio  # loaded already: this runs in its loop

    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    came: asyncio.Future[Any] = loop.create_future()

    def tell(reply: Any, error: BaseException | None) -> None:
        if came.done():
            return
        if error is None:
            came.set_result(reply)
        else:
            came.set_exception(error)

    def work() -> None:
        reply, error = None, None
        try:
            reply = context.run(world.answer, effect)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(tell, reply, error)
        except RuntimeError:
            return  # the loop is closed, so nobody waits

    threading.Thread(target=work, name="interlock-asking", daemon=True).start()
    return await came


async def _translating(effect: Effect, reply: Any) -> Any:
    try:
        return await reply
    except BaseException as error:
        translated = _translated(effect, error)
        if translated is error:
            raise
        raise translated from error


def execute(allowed: Allowed, run: Run | None) -> Returned | Raised:
    """Run one tool under its permit. Its exceptions become values; only :class:`Bug` and interpreter exits pass."""
    if run is None:
        raise Bug("a tool was to be executed by steps that execute nothing")
    try:
        with executing(Permit(allowed)) as arguments:
            value = run(allowed.call.tool.name, arguments)
            if inspect.iscoroutine(value):
                value.close()
                raise Refused("the tool is asynchronous: use acall or abatch")
            _whole(value)
    except Bug:
        raise
    except Exception as error:  # a tool's error is an outcome, never an exception in the agent loop
        return Raised(error)
    return Returned(value)


async def aexecute(allowed: Allowed, run: Run | None) -> Returned | Raised:
    """Like :func:`execute`; a synchronous tool runs in a worker thread, so that it can't stop the event loop."""
    if run is None:
        raise Bug("a tool was to be executed by steps that execute nothing")
    try:
        with executing(Permit(allowed)) as arguments:
            if _is_async(run):
                value = await run(allowed.call.tool.name, arguments)
            else:
                import asyncio  # loaded already: this runs in its loop

                # As a value: a StopIteration can't be carried back into the loop, and the call would hang.
                reply = await asyncio.to_thread(_attempted, run, allowed.call.tool.name, arguments)
                if isinstance(reply, Raised):
                    return reply
                value = reply.value
                if inspect.isawaitable(value):
                    value = await value
            _whole(value)
    except Bug:
        raise
    except Exception as error:  # see execute
        return Raised(error)
    return Returned(value)


def _attempted(run: Run, name: str, arguments: dict[str, Any]) -> Returned | Raised:
    try:
        return Returned(run(name, arguments))
    except Bug:
        raise
    except Exception as error:
        return Raised(error)


def _whole(value: object) -> None:
    """Refuse a result that has not done its work yet, and close it."""
    try:
        finished(value.content if isinstance(value, ToolResult) else value)
    except Refused:
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            value.close()
        raise


def _is_async(run: Any) -> bool:
    """Is this a coroutine function, however it is wrapped? ``spread`` leaves the user's function in ``tool``."""
    inner = getattr(run, "tool", run)
    call = getattr(inner, "__call__", None)  # noqa: B004 - the method is wanted, not whether it is there
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(call)


def spread(tool: Callable[..., Any]) -> Run:
    """``run(**arguments)`` as ``run(name, arguments)``."""

    def run(_name: str, arguments: dict[str, Any]) -> Any:
        return tool(**arguments)

    run.tool = tool  # type: ignore[attr-defined]  # functions take attributes; `_is_async` reads it
    return run
