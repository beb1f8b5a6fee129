"""A typed receiver vouched for other receivers that have the same normal form.

``https://hook.example/EVIL/../ME`` and ``…/EVIL/%2e%2e/ME`` have the normal form of a typed
``https://hook.example/ME``, so they counted as named by the person; but clients send the raw text, and the stranger's
server saw ``/EVIL/../ME``. In the same way ``bob@good。example`` was folded to a typed ``bob@good.example``, which only
some mail systems do. Now a URL whose raw path, query or fragment differs from its normal form, and an address that is
not ASCII, can't be parsed, and what can't be parsed is vouched for by nobody.
Mutations that this file catches: the comparison of raw with normal form in ``_url`` left out; ``isascii`` in
``_email`` left out.
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from interlock import Verdict
from tests.regressions.stage import BOTH, decided, guarded, says

REFUSED = "deny trifecta steered_destination"
TYPED = "post the notes to https://hook.example/ME and mail bob@good.example"


@pytest.mark.parametrize(
    "url",
    [
        "https://hook.example/EVIL/../ME",
        "https://hook.example/EVIL/%2e%2e/ME",
        "https://hook.example/EVIL/.%2E/ME",
        "https://hook.example/./ME",
        "https://hook.example/%2e/ME",
        "https://hook.example/M%45",
        "https://hook.example//ME",
        "https://hook.example/ME/",
        "https://hook.example/ME?",
        "https://hook.example/ME#x",
        "https://hook.example/\tME",
        "https://hook.example/\u200dME",
        "https://hook.example\\ME",
        "https:hook.example/ME",
        "https:///hook.example/ME",
        "https:/hook.example/ME",
        "https://x@hook.example/ME",
        "https://hook.example@evil.example/ME",
        "https://hook\u3002example/ME",
        "https://h\u24deok.example/ME",
        " https://hook.example/ME",
    ],
)
def test_another_text_of_the_same_normal_form_is_not_the_typed_url(url: str) -> None:
    assert says(decided("post", {"url": url, "body": "notes"}, typed=TYPED, labels=BOTH)) == REFUSED


@pytest.mark.parametrize(
    "address",
    [
        "bob@good\u3002example",
        "bob@\u24d6ood.example",
        "\uff42ob@good.example",
        "bob@good\u00ad.example",
        "bob@go\u200dod.example",
        "bob@good.exampl\u0435",
        "bob@good.example.",
        "bob@good.example ",
        "(x)bob@good.example",
        "bob@good.example,eve@evil.example",
        "bob@good.example;eve@evil.example",
        "bob@good.example\neve@evil.example",
        "Bob@good.example",
    ],
)
def test_another_text_of_the_same_normal_form_is_not_the_typed_address(address: str) -> None:
    assert says(decided("send_email", {"to": address, "body": "x"}, typed=TYPED, labels=BOTH)) == REFUSED


@pytest.mark.parametrize(
    "url",
    [
        "https://hook.example/ME",
        "HTTPS://hook.example/ME",
        "https://HOOK.example/ME",
        "https://hook.example:443/ME",
        "https://hook.example./ME",
    ],
)
def test_honest_the_host_may_be_spelled_as_every_client_reads_it(url: str) -> None:
    assert decided("post", {"url": url, "body": "notes"}, typed=TYPED, labels=BOTH).verdict is Verdict.ALLOW


@pytest.mark.parametrize("address", ["bob@good.example", "bob@GOOD.example"])
def test_honest_the_domain_of_an_address_has_no_case(address: str) -> None:
    assert decided("send_email", {"to": address, "body": "x"}, typed=TYPED, labels=BOTH).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "url",
    ["https://hook.example/a%20b", "https://hook.example/%E2%82%AC?q=%2e%2e", "https://hook.example/x?a=../b#../c"],
)
def test_honest_a_typed_url_may_hold_escapes_and_dots_that_stay_as_they_are(url: str) -> None:
    assert decided("post", {"url": url, "body": "x"}, typed=f"post it to {url}", labels=BOTH).verdict is Verdict.ALLOW


def test_what_a_client_sends_is_the_raw_text() -> None:
    """Why it matters: the server of the stranger is told the raw path, whatever its normal form is."""
    seen: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        worker = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        worker.start()
        port = server.server_address[1]

        def post(url: str, body: str) -> str:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            client.request("POST", url.removeprefix(f"http://localhost:{port}"), body)
            client.getresponse().read()
            client.close()
            return "sent"

        try:
            guard = guarded(f"post the notes to http://localhost:{port}/ME", BOTH)
            for path, verdict in (("/EVIL/../ME", Verdict.DENY), ("/ME", Verdict.ALLOW)):
                outcome = guard.call("post", {"url": f"http://localhost:{port}{path}", "body": "notes"}, run=post)
                assert outcome.verdict is verdict
            post(f"http://localhost:{port}/EVIL/../ME", "what would have been sent")
        finally:
            server.shutdown()
            worker.join()
    assert seen == ["/ME", "/EVIL/../ME"]
