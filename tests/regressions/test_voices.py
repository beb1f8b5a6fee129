"""The page that asked to be written to was not recognised as the one that had spoken.

A destination that is itself a source of untrusted content is asked while private data is exposed, even if the person
typed it. The gate forgot who had spoken in six ways: channels had no voice; a URL that could not be parsed was
nobody; labels that only the result carried brought no voice; the 257th call in flight pushed an older one out, voice
and all; ``admit`` dropped the URL it came from; a resumed conversation knew labels and no voices. Now each destination
kind has a voice, and where nobody can say who spoke, everybody counts as having spoken.
Mutations that this file catches: voices for URLs and mail addresses only; ``unheard`` dropped; voices recorded for
declared labels only; the evicted call's voice dropped; ``admit`` without voices; ``Opened`` not deafening.
"""

from __future__ import annotations

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal, ToolResult, Verdict
from tests.regressions.stage import MANIFEST, call, decided, guarded, interlock, says

PAGE = "https://page.example/form"
TYPED = f"read {PAGE} and file the report there; mail bob@page.example"
ASKED = "ask talks_back"


def _read_a_secret(guard: Guard) -> None:
    assert call(guard, "read_file", "secret", path="/home/u/notes").executed


def _post(guard: Guard, url: str = PAGE) -> str:
    return says(guard.preview(Call("post", {"url": url, "body": "secret"})))


def test_a_channel_talks_back() -> None:
    lock = Interlock(
        manifest=MANIFEST, settings={"address_book": {"channel": ["#all", "#desk"]}}, journal=MemoryJournal()
    )
    guard = lock.guard(Conversation.new())
    call(guard, "read_channel", "a stranger's text", channel="#all")
    _read_a_secret(guard)
    assert says(guard.preview(Call("say", {"channel": "#all", "body": "secret"}))) == ASKED
    assert says(guard.preview(Call("say", {"channel": "#desk", "body": "secret"}))) == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https://x@page.example/form",
        "https://page.example/a b",
        "https://page.example/\u00a0",
        "https://page.example/a\tb",
        "https:/page.example/form",
        "https://page.example/a/../form",
    ],
)
def test_whoever_could_not_be_made_out_may_be_anybody(url: str) -> None:
    guard = guarded(TYPED)
    assert call(guard, "fetch", "a stranger's text", url=url).executed
    _read_a_secret(guard)
    assert _post(guard) == ASKED


def test_labels_that_only_the_result_carries_have_a_voice() -> None:
    guard = guarded(TYPED)
    call(guard, "get", ToolResult("a stranger's text", labels=["untrusted:web"]), url=PAGE)
    _read_a_secret(guard)
    assert _post(guard) == ASKED


@pytest.mark.parametrize("reported", [True, False])
def test_a_crowd_in_flight_pushes_no_voice_out(reported: bool) -> None:
    guard = guarded(TYPED)
    ticket = guard.propose(Call("fetch", {"url": PAGE}, id="a"))
    for _ in range(3):
        guard.propose(*(Call("calc", {}) for _ in range(100)))
    if reported:
        guard.observe(ticket, "a", "a stranger's text")
    _read_a_secret(guard)
    assert _post(guard) == ASKED


@pytest.mark.parametrize("source", [PAGE, "https://page.example/other", "eve@page.example"])
def test_admitted_content_speaks_for_its_source(source: str) -> None:
    guard = guarded(TYPED)
    guard.admit("a stranger's text", labels=["untrusted:web"], source=source)
    _read_a_secret(guard)
    assert _post(guard) == ASKED


def test_a_resumed_conversation_does_not_know_who_spoke() -> None:
    conversation = Conversation.resumed([], ["untrusted:web", "private:files"])
    conversation.say(TYPED)
    assert _post(interlock().guard(conversation)) == ASKED


def test_the_host_and_its_mail_domain_are_one_party() -> None:
    guard = guarded(TYPED)
    call(guard, "fetch", "a stranger's text", url=PAGE)
    _read_a_secret(guard)
    assert says(guard.preview(Call("send_email", {"to": "bob@page.example", "body": "secret"}))) == ASKED


def test_honest_another_party_that_was_named_did_not_speak() -> None:
    guard = guarded(f"{TYPED}, and file it at https://desk.example/in")
    call(guard, "fetch", "a stranger's text", url=PAGE)
    _read_a_secret(guard)
    assert _post(guard, "https://desk.example/in") == "allow"


def test_honest_without_private_data_a_page_may_be_answered() -> None:
    guard = guarded(TYPED)
    call(guard, "fetch", "a form", url=PAGE)
    assert _post(guard) == "allow"


def test_honest_a_conversation_resumed_with_private_labels_only_has_heard_nobody() -> None:
    conversation = Conversation.resumed([], ["private:files"])
    conversation.say(TYPED)
    assert _post(interlock().guard(conversation)) == "allow"


def test_honest_content_without_untrusted_labels_is_no_voice() -> None:
    guard = guarded(TYPED)
    guard.admit("own notes", labels=["private:notes"], source=PAGE)
    guard.admit("a page", labels=["untrusted:web"], source="https://other.example/")
    assert _post(guard) == "allow"


def test_honest_without_labels_a_typed_url_is_posted_to() -> None:
    assert decided("post", {"url": PAGE, "body": "x"}, typed=TYPED).verdict is Verdict.ALLOW
