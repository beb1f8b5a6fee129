"""Who speaks from an admitted text was heard only when its source was nothing but a URL or an address.

``admit(text, source="Eve <eve@page.example>")``, a space before the URL, a word before it, ``mailto:``, and a URL that
can't be read made nobody speak, so that a send back to the page counted as one that the person named, with nobody
asked. Now every URL and address in a source speaks, and one that can't be made out speaks for everybody.
Mutations that this file catches: ``parties`` reading the whole source only; ``unheard`` left out of ``Admitted`` or
out of the state; the marks around a word kept.
"""

from __future__ import annotations

import pytest

from interlock import Call
from tests.regressions.stage import call, guarded, says

PAGE = "https://page.example/form"


def _says(source: str) -> str:
    guard = guarded(f"file it at {PAGE}")
    guard.admit("text", labels=["untrusted:web"], source=source)
    call(guard, "read_file", path="/x")
    return says(guard.preview(Call("post", {"url": PAGE, "body": "s"})))


@pytest.mark.parametrize(
    "source",
    [
        PAGE,
        f" {PAGE}",
        f"see {PAGE}",
        f"notes of {PAGE}, yesterday",
        f"Page <{PAGE}>",
        f"({PAGE})",
        "HTTPS://PAGE.example",
        "https://user@page.example/",
        "eve@page.example",
        "Eve <eve@page.example>",
        "Eve <eve@page.example>, Bob <bob@corp.example>",
        "mailto:eve@page.example",
        "MAILTO:eve@page.example",
    ],
)
def test_every_party_in_a_source_speaks(source: str) -> None:
    assert _says(source) == "ask talks_back"


@pytest.mark.parametrize("source", ["https://[::bad/x", "https://other.example:99999/", "x@", "https:///", "a@b@c"])
def test_a_party_that_cant_be_made_out_speaks_for_everybody(source: str) -> None:
    assert _says(source) == "ask talks_back"


@pytest.mark.parametrize(
    "source",
    [
        "notes/7",
        "memory",
        "https://other.example/",
        "Bob <bob@corp.example>",
        "by bob@corp.example.",
        "(see bob@corp.example!)",
    ],
)
def test_honest_others_do_not_speak_for_the_page(source: str) -> None:
    assert _says(source) == "allow"
