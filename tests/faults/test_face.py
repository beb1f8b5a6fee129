"""Proves that the public face keeps T2, T8 and T10 however it is called: threads, tasks, a running loop, after a fork.

Mutations that this file catches: the lock of the journal dropped; engine objects shared between threads; an engine
object kept after an error; a lock that a fork leaves held.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import Bug, Call, Conversation, Interlock, MemoryJournal, NotPermitted, ToolResult, Verdict, tool
from interlock.errors import EngineUnavailable, Refused, WrongJournal
from interlock.model.answers import parse_answers
from interlock.model.canonical import pack
from interlock.model.chain import verify
from interlock.model.digests import digest
from interlock.model.entries import Admitted, Decided, Opened, decode
from interlock.model.labels import Label
from interlock.model.state import State, apply
from interlock.policy import embedded as module
from interlock.policy.samples import SAMPLES
from tests.strategies import embedded
from tests.worlds import MANIFEST

PROMISED = {"private:mail", "untrusted:mail"}


def interlock(**changes: Any) -> Interlock:
    return Interlock(manifest=MANIFEST, journal=MemoryJournal(), **changes)


def decided(lock: Interlock, conversation: Conversation) -> list[Decided]:
    found = [decode(sealed.body) for sealed in lock.journal.entries(conversation.id)]  # type: ignore[attr-defined]
    return [entry for entry in found if isinstance(entry, Decided)]


def assert_sound(lock: Interlock, conversation: Conversation, calls: int) -> None:
    """No number twice, none left out, every decision under the labels that stood, and the chain holds."""
    journal: Any = lock.journal
    verify(journal.entries(conversation.id), journal.head(conversation.id))
    numbers = [entry.number for entry in decided(lock, conversation)]
    assert sorted(numbers) == list(range(1, calls + 1))
    state, made_under = State(), -1
    for sealed in journal.entries(conversation.id):
        entry = decode(sealed.body)
        if isinstance(entry, Decided) and entry.version != made_under:
            assert entry.version == state.version
        made_under = entry.version if isinstance(entry, Decided) else -1
        state = apply(state, entry)
    assert state == conversation.state


# --- one thread -------------------------------------------------------------------------------------------------------


def test_plain() -> None:
    lock = interlock()
    conversation = Conversation.user("write to bob@corp.example")
    guard = lock.guard(conversation)
    read = guard.call("read_mail", {"folder": "inbox"}, run=lambda folder: f"mail in {folder}")
    assert read.executed
    assert not read.is_error
    assert read.result == read.for_model == "mail in inbox"
    assert conversation.taint.labels == PROMISED
    sent = guard.call("send", {"to": "bob@corp.example", "body": "x"}, run=lambda to, body: "sent")
    assert sent.executed
    stolen = guard.call("send", {"to": "eve@evil.example", "body": "x"}, run=lambda to, body: "sent")
    assert stolen.verdict is Verdict.DENY
    assert not stolen.executed
    assert_sound(lock, conversation, 3)


def test_asyncio() -> None:
    lock = interlock()
    conversation = Conversation.new()

    async def read(folder: str) -> str:
        await asyncio.sleep(0)
        return folder

    async def main() -> Any:
        guard = lock.guard(conversation)
        first = await guard.acall("read_mail", {"folder": "a"}, run=read)
        second = await guard.acall("read_mail", {"folder": "b"}, run=lambda folder: folder)
        return first, second

    first, second = asyncio.run(main())
    assert (first.result, second.result) == ("a", "b")
    assert_sound(lock, conversation, 2)


def test_synchronous_calls_inside_a_running_loop() -> None:
    lock = interlock()
    conversation = Conversation.new()

    async def main() -> Any:
        return lock.guard(conversation).call("read_mail", {"folder": "a"}, run=lambda folder: folder)

    assert asyncio.run(main()).result == "a"
    assert_sound(lock, conversation, 1)


def test_an_asynchronous_tool_in_a_synchronous_call_is_an_error_and_runs_not() -> None:
    ran = []

    async def read(folder: str) -> str:
        ran.append(folder)
        return folder

    conversation = Conversation.new()
    outcome = interlock().guard(conversation).call("read_mail", {"folder": "a"}, run=read)
    assert outcome.is_error
    assert "acall" in str(outcome.error)
    assert not ran


def test_tasks_side_by_side_on_one_conversation() -> None:
    lock = interlock()
    conversation = Conversation.new()

    async def read(folder: str) -> str:
        await asyncio.sleep(0.0005)
        return folder

    async def main() -> None:
        guard = lock.guard(conversation)
        await asyncio.gather(*(guard.acall("read_mail", {"folder": str(n)}, run=read) for n in range(20)))

    asyncio.run(main())
    assert_sound(lock, conversation, 20)
    assert not conversation.state.in_flight


def test_a_cancelled_tool_leaves_its_labels() -> None:
    lock = interlock()
    conversation = Conversation.new()

    async def read(folder: str) -> str:
        await asyncio.sleep(60)
        return folder

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await lock.guard(conversation).acall("read_mail", {"folder": "a"}, run=read)

    asyncio.run(main())
    assert conversation.taint.labels == PROMISED
    assert not conversation.state.in_flight


def test_a_coroutine_that_is_closed_in_the_middle_of_a_tool_leaves_its_labels() -> None:
    """Nobody cancels it and nobody awaits it any more: the loop that drove it is gone."""
    conversation = Conversation.new()

    class Later:
        def __await__(self) -> Any:
            yield "somewhere"

    async def read(folder: str) -> str:
        await Later()
        return folder

    coroutine = interlock().guard(conversation).acall("read_mail", {"folder": "a"}, run=read)
    assert coroutine.send(None) == "somewhere"
    coroutine.close()
    assert conversation.taint.labels == PROMISED
    assert not conversation.state.in_flight


def test_a_batch_that_is_cancelled_forgets_nothing() -> None:
    lock = interlock()
    conversation = Conversation.new()

    async def run(name: str, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(60)
        return name

    async def main() -> None:
        calls = [Call("read_mail", {"folder": "a"}, "a"), Call("read_note", {}, "b")]
        for workers in (1, 2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await lock.guard(conversation).abatch(calls, run=run, workers=workers)

    asyncio.run(main())
    assert conversation.exposure.labels == PROMISED | {"private:notes"}


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads take turns a thousand times as often as they do by themselves, so that races are lost in earnest."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# --- many threads -----------------------------------------------------------------------------------------------------


def test_eight_threads_one_interlock_a_conversation_each() -> None:
    lock = interlock()
    conversations = [Conversation.new() for _ in range(8)]

    def work(conversation: Conversation) -> None:
        guard = lock.guard(conversation)
        for number in range(15):
            outcome = guard.call("read_mail", {"folder": str(number)}, run=lambda folder: folder)
            assert outcome.result == str(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, conversations))
    for conversation in conversations:
        assert_sound(lock, conversation, 15)
        assert conversation.taint.labels == PROMISED
    gc.collect()


@pytest.mark.usefixtures("eager")
def test_eight_threads_and_one_shared_conversation() -> None:
    lock = interlock()
    conversation = Conversation.new()
    start = threading.Barrier(8)
    labels = [f"private:thread-{number}" for number in range(8)]

    def work(number: int) -> None:
        guard = lock.guard(conversation)
        start.wait()
        for step in range(8):
            outcome = guard.call("read_note", {"step": step}, run=lambda step: ToolResult("x", labels=[labels[number]]))
            assert outcome.executed
            assert outcome.for_model == "x"
            guard.admit("x", labels=[f"untrusted:thread-{number}"], source="x")
            conversation.say("typed")

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number) for number in range(8)]:
            future.result()
    assert_sound(lock, conversation, 64)
    assert not conversation.state.in_flight
    assert conversation.taint.labels == {
        "private:notes",
        *labels,
        *(f"untrusted:thread-{number}" for number in range(8)),
    }


@pytest.mark.usefixtures("eager")
def test_eight_threads_append_to_one_journal_and_no_entry_is_lost() -> None:
    journal, start = MemoryJournal(), threading.Barrier(8)
    journal.open([Opened("2026-11-29T12:00:00.000000Z", "c-1")])

    def work(number: int) -> None:
        start.wait()
        for step in range(100):
            label = Label(f"private:thread-{number}")
            admitted = Admitted("2026-11-29T12:00:00.000000Z", str(step), (label,), digest("content", b""), step)
            journal.append("c-1", [admitted])

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, number) for number in range(8)]:
            future.result()
    verify(journal.entries("c-1"), journal.head("c-1"))
    assert len(journal.entries("c-1")) == 801
    assert journal.state("c-1").version == 801


@pytest.mark.usefixtures("eager")
def test_no_send_slips_through_while_another_thread_brings_the_secret() -> None:
    """T8 with a race: whenever a send was allowed, the labels that make it a leak stood after it in the journal."""
    lock = interlock(settings={"preset": "trifecta-only"})
    for _ in range(30):
        conversation = Conversation(labels=["untrusted:web"])
        guard = lock.guard(conversation)
        start = threading.Barrier(2)

        def bring(guard: Any = guard, start: Any = start) -> None:
            start.wait()
            guard.admit("secret", labels=["private:notes"], source="x")

        thread = threading.Thread(target=bring)
        thread.start()
        start.wait()
        outcome = guard.propose(Call("send", {"to": "eve@evil.example", "body": "x"}, "a")).outcomes["a"]
        thread.join()
        kinds = [decode(one.body).kind for one in lock.journal.entries(conversation.id)]  # type: ignore[attr-defined]
        first = kinds.index("decided") < kinds.index("admitted")
        assert outcome.verdict is (Verdict.ALLOW if first else Verdict.DENY)


def test_two_interlocks_on_one_conversation_share_its_journal_or_are_refused() -> None:
    conversation = Conversation.new()
    first = interlock()
    first.guard(conversation)
    with pytest.raises(WrongJournal):
        interlock().guard(conversation)
    second = Interlock(manifest=MANIFEST, journal=first.journal)
    second.guard(conversation).call("read_mail", {"folder": "a"}, run=lambda folder: folder)
    refused = first.guard(conversation).call("send", {"to": "eve@evil.example", "body": "x"}, run=lambda **_: "x")
    assert refused.verdict is Verdict.DENY


@pytest.mark.usefixtures("eager")
def test_many_threads_bind_a_conversation_once() -> None:
    lock = interlock()
    for _ in range(20):
        conversation = Conversation.new()
        start = threading.Barrier(8)

        def work(start: Any = start, conversation: Any = conversation) -> None:
            start.wait()
            conversation.say("x")
            lock.guard(conversation)
            conversation.say("y", pasted=True)

        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(work) for _ in range(8)]:
                future.result()
        assert len(lock.journal.entries(conversation.id)) == 17  # type: ignore[attr-defined]
        assert "untrusted:paste" in conversation.taint


# --- decorated tools --------------------------------------------------------------------------------------------------


@tool(returns=["untrusted:web"], egress="none")
def look(page: str) -> str:
    return f"page {page}"


@tool(returns=["private:notes"], egress="none")
async def look_async(page: str) -> str:
    await asyncio.sleep(0)
    return f"page {page}"


@tool(returns=[], egress="chosen", destinations={"to": "email"}, content=["body"])
def mail(to: str, body: str = "nothing") -> str:
    return f"{to}: {body}"


def test_t8_a_wrapped_function_refuses_to_run_by_itself() -> None:
    with pytest.raises(NotPermitted):
        look("a")
    with pytest.raises(NotPermitted):
        asyncio.run(look_async("a"))


def test_t8_inside_a_guard_it_goes_through_the_guard() -> None:
    lock = Interlock(tools=[look, look_async, mail], journal=MemoryJournal())
    conversation = Conversation.new()
    guard = lock.guard(conversation)
    with guard:
        assert look("a") == "page a"
        assert asyncio.run(look_async("b")) == "page b"
        with pytest.raises(NotPermitted) as caught:
            mail("eve@evil.example", body="secret-value")
    assert "secret-value" not in caught.value.for_model
    assert "trifecta" in caught.value.for_model
    assert conversation.taint.labels == {"untrusted:web", "private:notes"}
    assert_sound(lock, conversation, 3)
    with pytest.raises(NotPermitted):
        look("a")


def test_t8_under_one_permit_it_runs_once_and_only_with_these_arguments() -> None:
    lock = Interlock(tools=[look, mail], journal=MemoryJournal())
    guard = lock.guard(Conversation.new())

    def twice(page: str) -> Any:
        first = look(page)
        with pytest.raises(NotPermitted):
            look(page)
        with pytest.raises(NotPermitted):
            look(page + "x")
        with pytest.raises(NotPermitted):
            mail("eve@evil.example")
        return first

    assert guard.call("look", {"page": "a"}, run=twice).result == "page a"


def test_guards_in_threads_and_tasks_do_not_see_each_other() -> None:
    lock = Interlock(tools=[look, look_async], journal=MemoryJournal())
    guards = [lock.guard(Conversation.new()) for _ in range(4)]
    start = threading.Barrier(4)

    def work(guard: Any) -> None:
        with guard:
            start.wait()
            look("a")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, guards))

    async def task(guard: Any) -> None:
        with guard:
            await asyncio.sleep(0.001)
            await look_async("a")

    async def main() -> None:
        await asyncio.gather(*map(task, guards))

    asyncio.run(main())
    for guard in guards:
        assert_sound(lock, guard.conversation, 2)


def test_one_guard_shared_by_threads_and_tasks() -> None:
    """Regression: a guard that kept its place in the stack on itself mixed up the places of its threads."""
    lock = Interlock(tools=[look, look_async], journal=MemoryJournal())
    guard = lock.guard(Conversation.new())
    first, second = threading.Event(), threading.Event()

    def early() -> None:
        with guard:
            first.set()
            second.wait(5)
            look("a")

    def late() -> None:
        first.wait(5)
        with guard:
            second.set()
            look("b")

    with ThreadPoolExecutor(2) as pool:
        for future in (pool.submit(early), pool.submit(late)):
            future.result()

    async def task(nap: float) -> None:
        with guard:
            await asyncio.sleep(nap)
            await look_async("a")

    async def main() -> None:
        await asyncio.gather(task(0.004), task(0.001))

    asyncio.run(main())
    assert_sound(lock, guard.conversation, 4)


def test_guards_are_left_in_the_order_that_they_were_entered() -> None:
    lock = Interlock(tools=[look], journal=MemoryJournal())
    outer, inner = lock.guard(Conversation.new()), lock.guard(Conversation.new())
    with outer:
        with inner:
            look("a")
        look("b")
    assert_sound(lock, outer.conversation, 1)
    assert_sound(lock, inner.conversation, 1)
    with pytest.raises(Bug):
        contextvars.copy_context().run(outer.__exit__, None, None, None)


# --- tickets ----------------------------------------------------------------------------------------------------------


def test_a_ticket_serves_its_own_conversation_and_its_own_calls() -> None:
    lock = interlock()
    guard, other = lock.guard(Conversation.new()), lock.guard(Conversation.new())
    ticket = guard.propose(Call("read_mail", {"folder": "a"}, "a"), Call("nobody_declared", {}, "b"))
    for call_id in ("b", "c", ""):
        with pytest.raises(Refused):
            guard.observe(ticket, call_id, "x")
    with pytest.raises(Refused):
        other.observe(ticket, "a", "x")
    assert guard.observe(ticket, "a", "x").for_model == "x"


@pytest.mark.usefixtures("eager")
def test_two_threads_that_report_one_result_lose_no_label() -> None:
    lock = interlock()
    for _ in range(20):
        conversation = Conversation.new()
        guard = lock.guard(conversation)
        ticket = guard.propose(Call("read_mail", {"folder": "a"}, "a"))
        start = threading.Barrier(2)

        def report(external: bool, guard: Any = guard, ticket: Any = ticket, start: Any = start) -> Any:
            start.wait()
            return guard.observe(ticket, "a", ToolResult(f"external {external}", external=external))

        with ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(report, (True, False)))
        if any("external True" in one.for_model for one in outcomes):
            assert "untrusted:mail" in conversation.taint
        assert "private:mail" in conversation.taint


# --- the engine's objects ---------------------------------------------------------------------------------------------


def ask(document: Any) -> Any:
    raw = document if isinstance(document, bytes) else pack(document)
    return parse_answers(embedded().evaluate(raw), embedded().controls)


def test_every_thread_has_engines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, set[int]] = {}
    inner = module._ask

    def spy(engine: Any, document: bytes) -> str:
        seen.setdefault(threading.get_ident(), set()).add(id(engine))
        return inner(engine, document)

    monkeypatch.setattr(module, "_ask", spy)
    start = threading.Barrier(4)

    def work() -> Any:
        start.wait()
        found = [ask(SAMPLES["every leg"]) for _ in range(5)]
        start.wait()
        return found

    with ThreadPoolExecutor(4) as pool:
        answers = [future.result() for future in [pool.submit(work) for _ in range(4)]]
    assert len(seen) == 4
    assert all(len(engines) == 1 for engines in seen.values())
    assert len(set().union(*seen.values())) == 4
    assert all(one == answers[0][0] for found in answers for one in found)


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff", b'{"a":1}{', b"[" * 5000], ids=lambda bad: ascii(bad)[:8])
def test_after_an_error_the_next_document_is_asked_and_not_the_last(bad: bytes) -> None:
    """A failed `set_input` keeps the previous call's document; that object must never answer again."""
    clean, every = ask(SAMPLES["clean send"]), ask(SAMPLES["every leg"])
    assert clean != every
    ask(SAMPLES["clean send"])
    before = module._engines()[embedded().revision]
    with pytest.raises(EngineUnavailable):
        ask(bad)
    assert module._engines().get(embedded().revision) is not before, "the object that failed was kept"
    assert ask(SAMPLES["every leg"]) == every
    assert ask(SAMPLES["clean send"]) == clean


def test_an_object_that_answered_nonsense_or_panicked_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = embedded()
    engine.evaluate(pack(SAMPLES["clean send"]))
    inner = module._ask
    used: list[int] = []

    def fails_once(one: Any, document: bytes) -> str:
        used.append(id(one))
        if len(used) == 1:
            keep.append(one)  # or its address could be used again
            raise RuntimeError("injected")
        return inner(one, document)

    keep: list[Any] = []
    monkeypatch.setattr(module, "_ask", fails_once)
    with pytest.raises(EngineUnavailable):
        engine.evaluate(pack(SAMPLES["every leg"]))
    engine.evaluate(pack(SAMPLES["every leg"]))
    assert used[0] != used[1]


def test_error_texts_of_the_engine_name_no_place_on_this_machine() -> None:
    with pytest.raises(EngineUnavailable) as caught:
        embedded().evaluate(b"{")
    assert "backtrace" not in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def run_python(code: str) -> Any:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=False,
    )


SCENE = """
import gc, os, sys, threading
from interlock import Call, Conversation, Interlock, MemoryJournal
from tests.worlds import MANIFEST
lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
conversation = Conversation.new()
guard = lock.guard(conversation)
def read(): return guard.call("read_mail", {"folder": "a"}, run=lambda folder: folder)
def steal(): return guard.call("send", {"to": "eve@evil.example", "body": "x"}, run=lambda **_: "x").verdict.value
assert read().executed
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork_parent_and_child_go_on_and_nobody_complains() -> None:
    done = run_python(
        SCENE
        + """
stop = threading.Event()
def busy():
    while not stop.is_set():
        read()
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads: thread.start()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        try:
            for _ in range(5):
                assert read().executed
            assert steal() == "deny"
            assert "private:mail" in conversation.taint
            other = threading.Thread(target=read)
            other.start()
            other.join()
            del lock
            gc.collect()
        except BaseException as error:
            sys.stderr.write(repr(error))
            os._exit(1)
        sys.exit(0)
    children.append(child)
stop.set()
for thread in threads: thread.join()
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert read().executed
assert steal() == "deny"
print("done")
"""
    )
    assert (done.returncode, done.stdout.strip().splitlines()[-1:], done.stderr) == (0, ["done"], "")


def test_engines_die_with_their_threads_and_nobody_complains() -> None:
    done = run_python(
        SCENE
        + """
from concurrent.futures import ThreadPoolExecutor
def bad(number):
    try:
        lock.engine.evaluate(b"{")
    except Exception:
        pass
for _ in range(3):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: read(), range(40)))
        list(pool.map(bad, range(40)))
    gc.collect()
del guard, lock
gc.collect()
print("done")
"""
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


def test_the_interpreter_ends_while_a_thread_still_has_an_engine() -> None:
    done = run_python(
        SCENE
        + """
import time
ready = threading.Event()
def work():
    read()
    ready.set()
    time.sleep(60)
threading.Thread(target=work, daemon=True).start()
ready.wait()
print("done")
"""
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "done", "")


def test_a_slow_engine_holds_up_nobody_else() -> None:
    """The lock of the journal is not held while an engine thinks."""
    inner = embedded()
    entered, released, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        name, revision, controls, looks_at = inner.name, inner.revision, inner.controls, None

        def evaluate(self, document: bytes) -> str:
            entered.set()
            released.wait(10)
            return inner.evaluate(document)

    journal = MemoryJournal()
    slow = Interlock(manifest=MANIFEST, engine=Slow(), journal=journal)
    quick = Interlock(manifest=MANIFEST, engine=inner, journal=journal)

    def work() -> None:
        slow.guard(Conversation.new()).call("read_note", {}, run=lambda: "x")
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    assert quick.guard(Conversation.new()).call("read_note", {}, run=lambda: "x").executed
    assert not ended.is_set()
    released.set()
    thread.join()
    assert ended.is_set()
