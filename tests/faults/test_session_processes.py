"""Proves T16 and T2 between processes: one writer at a time, nothing lost by `kill -9`, nothing written by a fork.

Real processes, real locks, real permissions. The killing is done by the dozen: a process that guards calls, admits text
and rewrites, and says each time what was acknowledged to it, is killed in the middle, over and over, on one file.
Mutations that this file catches: no lock; a lock that a forked child releases; the process id not looked at; a mode of
0644; links that are followed; a folder of everybody.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Message, Session, ToolResult
from interlock.errors import JournalUnavailable, SessionBusy
from interlock.model.messages import Image
from interlock.stores.head_file import head_of
from tests.faults.disks import QuietDisk, guarded, missing, over

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.create(tmp_path / "s", Conversation.user("hello")) as made:
        yield made


def in_a_thread(work: Callable[[], object]) -> object:
    """What some work gives, or the error that it raises, in another thread."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def in_a_fork(work: Callable[[], object]) -> str:
    """The name of what some work raises in a forked child, or what it gives as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            try:
                said = str(work())
            except BaseException as error:
                said = type(error).__name__
            os.write(writer, said.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def in_a_new_process(path: Path) -> str:
    """What another interpreter says when it loads the session."""
    code = f"from interlock import Session\nwith Session.load({str(path)!r}): print('loaded')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


# --- one writer ---------------------------------------------------------------------------------------------------


def test_a_second_open_in_the_same_thread_is_told_so(session: Session) -> None:
    for _ in range(2):
        with pytest.raises(SessionBusy, match=r"open already, in this process or another one.*close it there"):
            Session.load(session.path)
    with pytest.raises(SessionBusy):
        Session.create(session.path, Conversation.new())
    session.conversation.say("still the writer")


def test_a_second_open_in_another_thread_is_told_so(session: Session) -> None:
    assert isinstance(in_a_thread(lambda: Session.load(session.path)), SessionBusy)
    session.close()
    loaded = in_a_thread(lambda: Session.load(session.path))
    assert isinstance(loaded, Session)
    assert in_a_thread(loaded.close) is None, "closed by another thread than the one that opened it"
    Session.load(session.path).close()


def test_a_second_open_in_another_process_is_told_so(session: Session) -> None:
    assert "SessionBusy" in in_a_new_process(session.path)
    assert in_a_fork(lambda: Session.load(session.path)) == "SessionBusy"
    session.close()
    assert in_a_new_process(session.path) == "loaded"
    assert in_a_fork(lambda: Session.load(session.path).damage) == ""


def test_many_threads_that_open_at_once_are_one_writer(tmp_path: Path) -> None:
    Session.create(tmp_path / "s", Conversation.user("hello")).close()
    gate, found = threading.Barrier(8), []

    def work() -> None:
        gate.wait()
        try:
            found.append(Session.load(tmp_path / "s"))
        except SessionBusy:
            found.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    (only,) = (one for one in found if one is not None)
    only.close()


def test_a_session_that_is_dropped_lets_go(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    del session
    gc.collect()
    Session.load(tmp_path / "s").close()


def test_a_refused_open_leaves_the_file_free(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"something else")
    with pytest.raises(JournalUnavailable, match="exists already"):
        Session.create(tmp_path / "s", Conversation.new())
    Session.load(tmp_path / "s").close()
    assert (tmp_path / "s.damaged-1").read_bytes() == b"something else"


# --- forks --------------------------------------------------------------------------------------------------------


def leave(session: Session) -> None:
    """Everything that ends a session in a child: leaving its block, closing it, dropping it."""
    for end in (lambda: session.__exit__(None, None, None), session.close, session._file.close):
        with contextlib.suppress(JournalUnavailable):
            end()
    gc.collect()


def test_a_forked_child_can_not_write(session: Session) -> None:
    guard, ran = guarded(session), []
    held = session.path.read_bytes()
    image = Message.user("", Image("image/png", b""))
    ways: list[Callable[[], Any]] = [
        lambda: session.conversation.say("from the child"),
        lambda: session.conversation.push(image),
        lambda: session.conversation.rewrite([]),
        lambda: guard.admit("text", labels=["private:child"], source="child"),
        lambda: session.record_run(session.conversation.snapshot(), session.conversation),
        lambda: session.conversation.fork(),
    ]
    assert [in_a_fork(one) for one in ways] == ["JournalUnavailable"] * len(ways)
    assert in_a_fork(lambda: guard.call("now", run=lambda: ran.append("x")).executed) == "False"
    assert session.path.read_bytes() == held
    session.conversation.say("from the parent")


def test_a_forked_child_can_not_release_the_lock(session: Session) -> None:
    assert in_a_fork(lambda: leave(session)) == "None"
    assert "SessionBusy" in in_a_new_process(session.path)
    session.conversation.say("still the writer")


def test_a_child_of_multiprocessing_can_not_write_or_release(session: Session) -> None:
    child = FORK.Process(target=leave, args=(session,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    with pytest.raises(SessionBusy):
        Session.load(session.path)
    session.conversation.say("still the writer")
    session.close()
    after = Session.load(session.path)
    assert not after.damage
    after.close()


def test_a_child_that_lives_on_does_not_keep_the_lock(session: Session) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        session.close()
        Session.load(session.path).close()
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


def test_a_fork_in_the_middle_of_a_write_does_not_hang(session: Session) -> None:
    """A thread of the parent holds the session's mutex at the fork; in the child there is no such thread."""
    with session._file._mutex:
        said = in_a_thread(lambda: in_a_fork(lambda: session.conversation.say("x")))
        assert said == "JournalUnavailable"
        assert in_a_thread(lambda: in_a_fork(session._file.close)) == "None"


# --- paths and permissions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "made" / "here"
    if umask == 0o777 and os.geteuid():
        folder.mkdir(mode=0o700, parents=True)  # nobody but root could use what such a umask makes
    old = os.umask(umask)
    try:
        session = Session.create(folder / "s", Conversation.user("hello"))
        session.close()
    finally:
        os.umask(old)
    assert not stat.S_IMODE(folder.stat().st_mode) & 0o077
    for one in folder.iterdir():
        assert not stat.S_IMODE(one.stat().st_mode) & 0o177, one.name
    if umask != 0o777:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    for way in (lambda: Session.create(folder / "s", Conversation.new()), lambda: Session.load(folder / "s")):
        with pytest.raises(JournalUnavailable, match="everybody may write there"):
            way()
    assert not list(folder.iterdir())


def linked(name: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        Session.create(path.with_name("real"), Conversation.user("precious")).close()
        place = path.with_name(name)
        place.unlink(missing_ok=True)
        place.symlink_to(path.with_name("real.head" if name.endswith("head") else "real"))

    return make


def a_folder(path: Path) -> None:
    path.mkdir()
    head_of(path).write_bytes(b"")


@pytest.mark.parametrize("make", [linked("s"), linked("s.head"), linked("s.lock"), a_folder])
def test_what_is_no_file_of_ours_is_refused_and_left_alone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "s"
    make(path)
    if not os.path.lexists(path):
        Session.create(tmp_path / "t", Conversation.user("hello")).close()
        (tmp_path / "t").rename(path)
    real = tmp_path / "real"
    held = real.read_bytes() if real.exists() else b""
    for way in (lambda: Session.load(path), lambda: Session.create(path, Conversation.new())):
        with pytest.raises(JournalUnavailable):
            way()
    assert (real.read_bytes() if real.exists() else b"") == held


def test_a_change_of_folder_leads_to_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session.create("s", Conversation.user("hello"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    session.conversation.say("more")
    session.close()
    assert not list((tmp_path / "elsewhere").iterdir())
    after = Session.load(tmp_path / "s")
    assert after.conversation.messages[0].text == "hello\nmore"
    after.close()


# --- threads on one session -----------------------------------------------------------------------------------------


def test_t2_threads_that_share_a_session_lose_nothing(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.new())
    guard = guarded(session)
    told: list[str] = []

    def work(name: str) -> None:
        for number in range(12):
            one = f"private:{name}-{number}"
            guard.admit("text", labels=[one], source="notes")
            told.append(one)
            session.conversation.push(Message.user(one))
            if number % 4 == 0:
                session.conversation.rewrite(session.conversation.messages[-2:])
            session.record_run(session.conversation.snapshot(), session.conversation)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.close()
    after = Session.load(tmp_path / "s")
    assert not after.damage
    assert len(told) == 48
    assert not missing(after.conversation, set(told))
    after.close()


def test_t16_a_close_in_the_middle_of_calls_refuses_or_has_recorded(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.new())
    guard, told, begun = guarded(session), [], threading.Event()

    def work() -> None:
        for number in range(10_000):
            try:
                guard.admit("text", labels=[f"private:n{number % 50}"], source="notes")
            except JournalUnavailable:
                return
            told.append(f"private:n{number % 50}")
            begun.set()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    session.close()
    for thread in threads:
        thread.join()
    after = Session.load(tmp_path / "s")
    assert not after.damage
    assert not missing(after.conversation, set(told))
    after.close()


# --- kill -9 ------------------------------------------------------------------------------------------------------

TOOLS = {"read_mail": {"private:mail", "untrusted:mail"}, "read_note": {"private:notes"}, "fetch": {"untrusted:web"}}
ARGUMENTS = {"read_mail": {"folder": "inbox"}, "read_note": {}, "fetch": {"url": "http://a.example/"}}


def work_for_ever(path: Path, seed: int, say: Callable[[str], object]) -> None:
    """Guard calls, admit, rewrite, roll back; after everything that returned, say which labels that acknowledged."""
    chance = random.Random(seed)
    session = Session.load(path) if path.exists() else Session.create(path, Conversation.user("go"))
    guard, conversation = guarded(session), session.conversation
    say(" ".join(conversation.exposure))
    for number in range(1_000_000):
        match chance.randrange(6):
            case 0 | 1:
                name = chance.choice(list(TOOLS))
                outcome = guard.call(name, ARGUMENTS[name], run=lambda **_: ToolResult("text"))
                if outcome.executed:
                    say(" ".join(TOOLS[name]))
                conversation.push(Message.assistant(f"I called {name}"))
            case 2 | 3:
                one = f"private:s{seed % 40}n{number % 4}"
                guard.admit("text", labels=[one], source="notes")
                say(one)
            case 4:
                conversation.rewrite(conversation.messages[-3:])
                say("")
            case _:
                before = conversation.snapshot()
                conversation.push(Message.assistant("failed"))
                conversation.roll_back_failed_turn(before)
                session.record_run(before, conversation)
                say("")


def a_fork(path: Path, seed: int) -> tuple[int, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            # What a killed process wrote is in the kernel's hands: waiting for the disk would only make it slow.
            with over(QuietDisk()):
                work_for_ever(path, seed, lambda text: os.write(writer, f"{text}\n".encode()))
        finally:
            os._exit(1)
    os.close(writer)
    return child, open(reader)  # closed by the caller


def a_new_interpreter(path: Path, seed: int) -> tuple[int, Any]:
    code = (
        "from functools import partial\nfrom pathlib import Path\n"
        "from tests.faults.test_session_processes import work_for_ever\n"
        f"work_for_ever(Path({str(path)!r}), {seed}, partial(print, flush=True))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    process.returncode = 0  # waited for by number, like a fork
    return process.pid, process.stdout


@pytest.mark.parametrize(("start", "kills", "longest"), [(a_fork, 30, 17), (a_new_interpreter, 2, 40)])
def test_t16_kill_9_never_loads_less_than_was_acknowledged(
    tmp_path: Path, start: Any, kills: int, longest: int
) -> None:
    path, chance = tmp_path / "s", random.Random(5)
    acknowledged: set[str] = set()
    writes = 0
    for seed in range(kills):
        child, lines = start(path, seed)
        enough = chance.randrange(1, longest)
        with lines:
            for number, line in enumerate(lines, 1):
                acknowledged |= set(line.split())
                if number == enough:
                    os.kill(child, signal.SIGKILL)
            # What it still said before it died was acknowledged too; the pipe has been read to its end.
            writes += number
        os.waitpid(child, 0)
        session = Session.load(path)
        assert not session.damage
        assert not missing(session.conversation, acknowledged), f"forgotten after kill {seed}"
        session.close()
    assert writes >= 200 or start is a_new_interpreter
