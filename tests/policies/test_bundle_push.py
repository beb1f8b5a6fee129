"""Proves that pushing exchanges a bundle as a whole or not at all, and says so when somebody else was first.

Against a real web server on loopback; that OPA takes what was pushed stands in test_bundles_in_opa.py.

Mutations that it is shown to catch (scripts/mutate.py): equal bytes written again, the condition of a PUT left out,
what was put not read back, redirects followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.errors import Conflict, InterlockError, Misconfigured, Unavailable
from interlock.policy.publishing import Access, put_address, put_file
from tests.ids import stable
from tests.policies.bundling import Shelf, certificate, shelf, tag


@pytest.fixture
def server() -> Iterator[Shelf]:
    with shelf() as running:
        yield running


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_exchanged_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "bundle.tar.gz"
    assert put_file(b"one", target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    held = target.open("rb")
    seen: list[bytes] = []
    real = os.replace

    def watched(source: str, goal: Path) -> None:
        seen.append(target.read_bytes())  # whole and old, until the moment when it is whole and new
        real(source, goal)

    monkeypatch.setattr(os, "replace", watched)
    assert put_file(b"two", target)
    with held:
        assert (seen, held.read(), target.read_bytes()) == ([b"one"], b"one", b"two")
    assert list(tmp_path.iterdir()) == [target]


def test_equal_bytes_are_not_written_again(tmp_path: Path) -> None:
    target = tmp_path / "bundle.tar.gz"
    put_file(b"one", target)
    os.utime(target, (1, 1))
    before = target.stat()
    assert not put_file(b"one", target)
    assert (target.stat().st_mtime_ns, target.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_when_it_can_not_be_written_the_old_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "bundle.tar.gz"
    put_file(b"one", target)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match=r"No space left.*still there"):
        put_file(b"two", target)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"one"]
    with pytest.raises(Unavailable):
        put_file(b"one", tmp_path / "none" / "bundle.tar.gz")


# --- addresses --------------------------------------------------------------------------------------------------------


def test_put_says_what_it_replaces(server: Shelf) -> None:
    assert put_address(b"one", server.url(), Access())
    assert put_address(b"two", server.url(), Access())
    assert server.held == {"/bundle.tar.gz": b"two"}
    puts = [headers for method, _, headers in server.asked if method == "PUT"]
    assert [one.get("If-None-Match") for one in puts] == ["*", None]
    assert [one.get("If-Match") for one in puts] == [None, tag(b"one")]
    assert all(one["Content-Type"] == "application/gzip" for one in puts)
    server.asked.clear()
    assert not put_address(b"two", server.url(), Access())
    assert [method for method, *_ in server.asked] == ["GET"]


@pytest.mark.parametrize("before", [b"", b"one"], ids=stable)
def test_of_two_who_push_at_once_one_is_told(server: Shelf, before: bytes) -> None:
    if before:
        server.held["/bundle.tar.gz"] = before
    server.races = b"somebody else's"
    with pytest.raises(Conflict, match="somebody else pushed"):
        put_address(b"mine", server.url(), Access())
    assert server.held["/bundle.tar.gz"] == b"somebody else's"


def test_what_comes_back_is_what_counts(server: Shelf) -> None:
    server.spoils = True
    with pytest.raises(Unavailable, match="not what the server gives back"):
        put_address(b"one", server.url(), Access())


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 405, 409, 500, 503])
def test_any_other_answer_is_no_success(server: Shelf, status: int) -> None:
    server.status = status
    with pytest.raises(Unavailable, match=f"answered {status}"):
        put_address(b"one", server.url("/b?key=geheim"), Access())
    assert server.held == {}


def test_no_answer_at_all(server: Shelf) -> None:
    with pytest.raises(Unavailable, match="no answer"):
        put_address(b"one", "http://127.0.0.1:9/b", Access())


def test_an_address_that_only_takes(server: Shelf) -> None:
    assert put_address(b"one", server.url(), Access(read_back=False))
    assert [method for method, *_ in server.asked] == ["PUT"]


def test_the_token_comes_from_a_file_and_is_not_told(
    server: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("t0ken\n")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # a proxy would get to read it
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    put_address(b"one", server.url(), Access(token_file=file))
    assert {headers.get("Authorization") for *_, headers in server.asked} == {"Bearer t0ken"}
    server.status = 500
    with pytest.raises(Unavailable) as caught:
        put_address(b"two", server.url("/b?sig=geheim"), Access(token_file=file))
    assert "geheim" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


def test_the_servers_certificate_is_checked(tmp_path: Path) -> None:
    ours, other = certificate(tmp_path, "127.0.0.1"), certificate(tmp_path, "opa.example")
    with shelf(ours) as server:
        assert put_address(b"one", server.url(), Access(ca_file=ours))
        for ca in (None, other):
            with pytest.raises(Unavailable, match="no answer"):
                put_address(b"two", server.url(), Access(ca_file=ca))
    with shelf(other) as server, pytest.raises(Unavailable, match="no answer"):
        put_address(b"two", server.url(), Access(ca_file=other))  # vouched for, and another machine's
    assert server.held == {}


WRONG: dict[str, tuple[str, dict[str, str]]] = {
    "plain HTTP to another machine": ("http://opa.example/b", {}),
    "plain HTTP to a name like this machine": ("http://localhost.example/b", {}),
    "a password in the address": ("https://me:secret@opa.example/b", {}),
    "another scheme": ("ftp://opa.example/b", {}),
    "no host": ("https:///b", {}),
    "no token": ("https://opa.example/b", {"token_file": ""}),
    "a token of two lines": ("https://opa.example/b", {"token_file": "a\nX-Other: b"}),
    "a token that is not there": ("https://opa.example/b", {"token_file": "none"}),
    "no certificates": ("https://opa.example/b", {"ca_file": "nothing"}),
}


@pytest.mark.parametrize("what", WRONG, ids=stable)
def test_nothing_is_sent_when_the_access_is_wrong(what: str, tmp_path: Path) -> None:
    address, files = WRONG[what]
    access = {}
    for name, text in files.items():
        access[name] = tmp_path / name
        if text != "none":
            access[name].write_text(text)
    with pytest.raises(Misconfigured) as caught:
        put_address(b"one", address, Access(**access))  # type: ignore[arg-type]
    assert isinstance(caught.value, InterlockError)
    assert "secret" not in str(caught.value)
