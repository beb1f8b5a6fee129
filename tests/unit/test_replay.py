"""Proves that a replay decides recorded conversations as they would have been decided, and keeps to what happened.

What was made in the record counts even where it is refused here; what a record can't say falls to the strict side;
nothing is executed; the cost is linear.

Mutations that it is shown to catch: labels of a refused call that was made left out; results matched by order instead
of by id; user text pushed instead of said; a result without a call ignored.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from cProfile import Profile
from datetime import UTC, datetime
from pathlib import Path
from pstats import Stats
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from interlock import Manifest, Message
from interlock.assembly import Parts
from interlock.cli import cli
from interlock.integrations import interlock_messages
from interlock.loops import run_anthropic, run_chat, run_responses
from interlock.model.messages import Image
from interlock.replay import (
    Assumptions,
    Line,
    Noticed,
    Side,
    Transcript,
    TranscriptError,
    read_transcript,
    replay,
    side,
    transcript,
)
from tests.integrations.shapes import ANTHROPIC, CHAT, MANIFEST, RESPONSES, SHAPES, Shape, fresh

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT / "examples" / "transcripts"
CONFIG = TRANSCRIPTS / "interlock.toml"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def one_side(manifest: Manifest = MANIFEST) -> Side:
    return side(Parts(manifest), NOW, ROOT)


def lines(messages: Iterable[Any], codec: Any = interlock_messages, **assumptions: bool) -> list[Line]:
    """What a replay says of messages of a shape; of ours, unless told otherwise."""
    recording = transcript("test", "test", codec.recorded(messages))
    return [one for (one,) in replay(recording, [one_side()], Assumptions(**assumptions), Noticed())]


def use(number: int | str, name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"id": f"u{number}", "name": name, "arguments": arguments}


def assistant(*uses: dict[str, Any]) -> dict[str, Any]:
    return {"interlock": 1, "role": "assistant", "uses": list(uses)}


def answers(*found: int | str, text: str = "done", **more: Any) -> dict[str, Any]:
    return {"interlock": 1, "role": "tool", "answers": [{"id": f"u{one}", "text": text, **more} for one in found]}


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"interlock": 1, "role": "user", "text": text, **more}


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(cli, ["replay", *map(str, arguments)])


def report(*arguments: str | Path) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- the recorded conversations ---------------------------------------------------------------------------------------

ATTACKS = {
    "anthropic_mail_attack.json": ("fetch_page", {"untrusted:mail": 1, "private:files": 2, "private:mail": 1}),
    "chat_issue_attack.jsonl": ("create_pull_request", {"untrusted:issues": 1, "private:repository": 2}),
    "responses_pdf_attack.json": ("web_search", {"untrusted:attachment": 1, "private:workspace": 2}),
}
HONEST = ["anthropic_mail_honest.json", "chat_issue_honest.jsonl", "responses_pdf_honest.json"]


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_denied_where_it_would_have_left(name: str) -> None:
    (found,) = report(TRANSCRIPTS / name, "--config", CONFIG)["transcripts"]
    *before, last = found["calls"]
    tool, legs = ATTACKS[name]
    assert [one["verdict"] for one in before] == ["allow"] * len(before)
    assert (last["tool"], last["verdict"], last["code"]) == (tool, "deny", "trifecta")
    assert {one["label"]: one["call"] for one in last["legs"]} == legs
    assert last["made_anyway"]
    assert found["shape"] == name.partition("_")[0]


@pytest.mark.parametrize("name", HONEST)
def test_its_honest_twin_goes_through(name: str) -> None:
    found = report(TRANSCRIPTS / name, "--config", CONFIG)
    assert found["totals"]["verdicts"] == {"allow": found["totals"]["calls"], "ask": 0, "deny": 0}


def test_all_transcripts_are_known_here() -> None:
    recorded = {one.name for one in TRANSCRIPTS.iterdir() if one.suffix in (".json", ".jsonl")}
    assert recorded == {*ATTACKS, *HONEST}


# --- what happened ----------------------------------------------------------------------------------------------------


@st.composite
def scripts(draw: st.DrawFn) -> list[list[tuple[str, str, str]]]:
    some = st.sampled_from(
        [
            ("read_mail", "{}"),
            ("fetch", '{"url": "https://news.example/a"}'),
            ("fetch", '{"url": "https://stranger.example/a"}'),
            ("send", '{"to": "ana@corp.example", "body": "x"}'),
            ("send", '{"to": "eve@stranger.example", "body": "x"}'),
            ("write", '{"path": "notes.txt", "text": "x"}'),
            ("now", "{}"),
            ("nobody", "{}"),
            ("now", '{"x": '),
        ]
    )
    turns = draw(st.lists(st.lists(some, min_size=1, max_size=3), min_size=1, max_size=4))
    return [[(f"c{n}_{m}", *one) for m, one in enumerate(turn)] for n, turn in enumerate(turns)]


@pytest.mark.parametrize("shape", [ANTHROPIC, CHAT, RESPONSES], ids=str)
def test_a_replay_decides_as_it_was_decided(shape: Shape) -> None:
    """T11: a conversation that ran under Interlock, read back in two shapes, gets the same decisions again."""
    loop: Callable[..., Any] = {"anthropic": run_anthropic, "chat": run_chat, "responses": run_responses}[shape.name]

    @given(scripts())
    def check(script: list[list[tuple[str, str, str]]]) -> None:
        if shape is ANTHROPIC:  # which has no broken JSON: arguments are an object
            script = [[(i, n, a) for i, n, a in turn if not a.endswith(" ")] for turn in script]
        responses = [shape.write(turn, "") if turn else shape.write([], "hm") for turn in script]
        guard = fresh()
        asked = iter([*responses, shape.write([], "fine")])
        said = "Read https://news.example/a and tell ana@corp.example"
        finished = loop(lambda **_: next(asked), guard, lambda _name, _given: "done", said)
        live = [(one.verdict, one.decision.codes) for one in finished.outcomes]
        ours = [json.loads(line) for line in interlock_messages.lines(guard.conversation.messages)]
        for messages, codec in ((finished.messages, shape.codec), (ours, interlock_messages)):
            again = lines(json.loads(json.dumps(messages)), codec, trust_refusals=True)
            assert [(one.verdict, one.codes) for one in again] == live

    check()


def test_a_refused_call_that_was_made_counts() -> None:
    """Nobody declared `leak`, so it is asked; the record has its result, so everything that it may bring is there."""
    first, second, third = lines(
        [
            user("go"),
            assistant(use(1, "leak")),
            answers(1),
            assistant(use(2, "now")),
            answers(2),
            assistant(use(3, "fetch", url="https://a.example/")),
        ]
    )
    assert (first.verdict.value, first.made_anyway, first.recorded) == ("ask", True, "result")
    assert {(one.label, one.call, one.by) for one in second.legs} == {
        ("private:unknown", 1, "leak"),
        ("untrusted:unknown", 1, "leak"),
        ("egress:unknown", 1, "leak"),
    }
    assert third.verdict.value == "deny"


def test_a_page_that_was_refused_and_read_anyway_talks_back() -> None:
    """The host of a call that is refused here has spoken in the record."""
    page = "https://stranger.example/page"
    *_, fetched, sent = lines(
        [
            user("tell bob@stranger.example"),
            assistant(use(1, "read_mail")),
            answers(1),
            assistant(use(2, "fetch", url=page)),
            answers(2),
            assistant(use(3, "send", to="bob@stranger.example", body="x")),
        ]
    )
    assert (fetched.code, fetched.made_anyway) == ("trifecta", True)
    assert (sent.verdict.value, sent.code) == ("ask", "talks_back")
    assert {one.label: one.call for one in sent.legs} == {"private:mail": 1, "untrusted:mail": 1, "untrusted:web": 2}


def test_a_call_of_a_malformed_shape_that_was_made_counts_as_its_tool() -> None:
    chat = CHAT.write([("a", "read_mail", '{"broken'), ("b", "un\nknown", "{}")], "")["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": one, "content": "x"} for one in ("a", "b")]
    last = CHAT.write([("c", "now", "{}")], "")["choices"][0]["message"]
    broken, nameless, after = lines([chat, *results, last], CHAT.codec)
    assert (broken.tool, broken.code, broken.made_anyway) == ("read_mail", "invalid_call", True)
    assert "not JSON" in broken.problem
    assert (nameless.tool, nameless.code) == ("(malformed)", "invalid_call")
    assert {one.label for one in after.legs} == {
        *("private:mail", "untrusted:mail", "private:unknown", "untrusted:unknown", "egress:unknown")
    }


def test_a_call_that_the_record_calls_not_run_brings_nothing() -> None:
    leak = [assistant(use(1, "leak")), answers(1, executed=False), assistant(use(2, "now"))]
    first, second = lines(leak)
    assert (first.recorded, first.made_anyway) == ("not run", False)
    assert second.legs == ()
    refusal = "Not done: this call was denied by the security policy. [trifecta] …"
    said_so = [assistant(use(1, "leak")), answers(1, text=refusal), assistant(use(2, "now"))]
    assert lines(said_so)[1].legs != ()  # whoever writes results could write that
    assert lines(said_so, trust_refusals=True)[1].legs == ()


def test_a_call_without_a_result_is_in_doubt() -> None:
    for name in ("read_mail", "leak"):
        first, second = lines([assistant(use(1, name)), assistant(use(2, "now"))])
        assert first.recorded == "none"
        assert {one.call for one in second.legs} == {1}


def test_results_find_their_calls_by_id_in_any_order() -> None:
    failed = {"id": "u2", "text": "no", "is_error": True}
    both = assistant(use(1, "now"), use(2, "read_mail"))
    reverse = {"interlock": 1, "role": "tool", "answers": [failed, {"id": "u1", "text": "x", "external": False}]}
    first, second = lines([both, reverse])
    assert (first.recorded, second.recorded) == ("result", "error")


def test_one_id_for_every_call_is_told_apart_by_turn() -> None:
    messages = []
    for name in ("now", "read_mail", "now"):
        messages += [assistant(use(0, name)), answers(0, text=name)]
    assert [one.recorded for one in lines(messages)] == ["result"] * 3
    lost = [assistant(use(0, "now")), assistant(use(0, "read_mail")), answers(0)]
    assert [one.recorded for one in lines(lost)] == ["none", "result"]
    twice = [assistant(use(0, "now"), use(0, "read_mail")), answers(0, 0)]
    assert [one.recorded for one in lines(twice)] == ["result"] * 2


def test_a_result_of_no_call_is_everything() -> None:
    seen = Noticed()
    recording = transcript("t", "t", interlock_messages.recorded([answers(9), assistant(use(1, "now"))]))
    ((line,),) = replay(recording, [one_side()], Assumptions(), seen)
    assert {one.label for one in line.legs} == {"private:unknown", "untrusted:unknown"}
    assert seen.stray == 1


def test_external_and_inner_results() -> None:
    inner = [assistant(use(1, "fetch", url="https://a.example/")), answers(1, external=False), assistant(use(2, "now"))]
    assert lines(inner)[1].legs == ()


# --- what a record can't say ------------------------------------------------------------------------------------------

SEND = [
    user("Mail it to ana@corp.example"),
    assistant(use(1, "read_mail")),
    answers(1),
    assistant(use(2, "send", to="ana@corp.example", body="x")),
]


def test_text_of_the_user_is_typed_unless_told_otherwise() -> None:
    assert lines(SEND)[1].verdict.value == "allow"
    assert lines(SEND, typed=False)[1].code == "trifecta"


def test_pasted_text_vouches_for_nothing_and_is_a_strangers() -> None:
    pasted = lines([{**SEND[0], "pasted": True}, *SEND[1:]])
    assert pasted[1].code == "trifecta"
    assert pasted[0].legs[0].label == "untrusted:paste"


def test_what_was_attached_has_its_labels() -> None:
    admitted = {"interlock": 1, "role": "admitted", "labels": ["untrusted:memory"], "source": "notes/7"}
    (line,) = lines([user("see", images=[{"media_type": "image/png"}]), admitted, assistant(use(1, "now"))])
    assert {(one.label, one.by) for one in line.legs} == {("private:image", "image"), ("untrusted:memory", "notes/7")}
    (line,) = lines([{"interlock": 1, "role": "admitted"}, assistant(use(1, "now"))])
    assert {one.label for one in line.legs} == {"private:unknown", "untrusted:unknown"}


def test_hosted_tools_are_shown_and_counted() -> None:
    """Nothing can refuse them, but what is declared of them says what a gate would have thought."""
    search = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}}
    interpreted = {"type": "code_interpreter_call", "id": "i", "code": "1+1", "status": "completed"}
    call = {"type": "function_call", "call_id": "a", "name": "read_mail", "arguments": "{}"}
    again = {"type": "function_call", "call_id": "b", "name": "now", "arguments": "{}"}
    out = {"type": "function_call_output", "call_id": "a", "output": "x"}
    found = lines([search, call, out, search, interpreted, again], RESPONSES.codec)
    assert [(one.tool, one.recorded) for one in found] == [
        ("openai/web_search", "hosted"),
        ("read_mail", "result"),
        ("openai/web_search", "hosted"),
        ("openai/code_interpreter", "hosted"),
        ("now", "none"),
    ]
    assert [one.verdict.value for one in found] == ["allow", "deny", "deny", "allow", "allow"]
    assert {one.label for one in found[-1].legs} >= {"egress:search", "untrusted:web", "private:code"}


# --- reading ----------------------------------------------------------------------------------------------------------


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


CALL = CHAT.write([("a", "n", "{}")], "")["choices"][0]["message"]
OUTPUT = RESPONSES.write([("a", "n", "{}")], "")["output"]


@pytest.mark.parametrize(
    ("name", "text", "shape", "calls"),
    [
        ("a.json", json.dumps([CALL]), "chat", 1),
        ("a.json", json.dumps({"messages": [CALL], "model": "m"}), "chat", 1),
        ("a.json", json.dumps(CALL), "chat", 1),
        ("a.jsonl", json.dumps(CALL) + "\n\n" + json.dumps(CALL) + "\n", "chat", 2),
        ("a.jsonl", json.dumps({"messages": [CALL]}) + "\n", "chat", 1),
        ("a.json", json.dumps(CALL) + "\n" + json.dumps(CALL) + "\n", "chat", 2),
        ("a.json", json.dumps([{"role": "user", "content": "hi"}]), "chat", 0),
        ("a.json", json.dumps({"input": "hi", "output": OUTPUT}), "responses", 1),
        ("a.json", json.dumps({"input": OUTPUT}), "responses", 1),
        ("a.json", json.dumps(RESPONSES.write([("a", "n", "{}")], "")), "responses", 1),
        ("a.json", json.dumps(ANTHROPIC.write([("a", "n", "{}")], "")), "anthropic", 1),
        ("a.json", json.dumps(CHAT.write([("a", "n", "{}")], "")), "chat", 1),
        ("a.jsonl", json.dumps(assistant(use(1, "n"))), "interlock", 1),
    ],
)
def test_what_a_file_is(tmp_path: Path, name: str, text: str, shape: str, calls: int) -> None:
    recording = read_transcript(written(tmp_path, name, text))
    assert (recording.shape, recording.calls) == (shape, calls)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "", "not JSON"),
        ("a.jsonl", json.dumps(CALL) + "\n{\n", "line 2: not JSON"),
        ("a.jsonl", json.dumps(CALL) + '\n{"role": "user", "role": "tool"}\n', "line 2: a key stands twice"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '"text"', "not a conversation"),
        ("a.json", "[1]", "can't tell its shape"),
        ("a.json", json.dumps([CALL, RESPONSES.write([("a", "n", "{}")], "")]), "chat and responses"),
    ],
)
def test_what_can_not_be_read_is_said_with_its_place(tmp_path: Path, name: str, text: str, problem: str) -> None:
    with pytest.raises(TranscriptError, match=problem):
        read_transcript(written(tmp_path, name, text))


def test_a_shape_that_is_said_is_not_guessed(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", json.dumps([{"role": "user", "content": "hi"}]))
    assert read_transcript(path, "anthropic").shape == "anthropic"
    with pytest.raises(TranscriptError, match="--shape responses, but it looks like chat"):
        read_transcript(TRANSCRIPTS / "chat_issue_attack.jsonl", "responses")
    bad = tmp_path / "b.json"
    bad.write_bytes(b"\xff")
    with pytest.raises(TranscriptError, match="not UTF-8"):
        read_transcript(bad)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_only_its_own_shape_takes_a_message_for_its_own(shape: Shape) -> None:
    turn = shape.codec.read(shape.write([("a", "now", "{}")], "hi"))
    for item in (*turn.history, *shape.codec.results(turn, [])):
        assert [one.name for one in SHAPES if one.codec.resembles(item)] in ([shape.name], [])


def test_our_own_messages_survive_the_way_to_lines() -> None:
    guard = fresh()
    guard.conversation.say("hi")
    guard.conversation.push(Message.user("see", Image("image/png", b"png")))
    outcomes = guard.batch([], run=lambda _n, _a: "")
    guard.conversation.push(Message.results(*outcomes))
    found = [json.loads(line) for line in interlock_messages.lines(guard.conversation.messages)]
    assert [one["role"] for one in found] == ["user", "user", "tool"]
    assert found[1]["images"] == [{"media_type": "image/png"}]
    assert all(interlock_messages.resembles(one) for one in found)


# --- the command ------------------------------------------------------------------------------------------------------


def test_one_line_per_call_with_what_brought_each_leg() -> None:
    done = run(TRANSCRIPTS / "anthropic_mail_attack.json", "--config", CONFIG)
    assert done.exit_code == 0
    assert "assumed: all text in the user's role (1) was typed" in done.stdout
    line = next(line for line in done.stdout.splitlines() if "fetch_page" in line)
    assert (
        line.split()
        == (
            "3 fetch_page deny trifecta private:mail +1 ← 1 read_mail, untrusted:mail ← 1 read_mail"
            " made anyway: its labels count"
        ).split()
    )


def test_another_manifest_and_other_controls_show_what_would_change(tmp_path: Path) -> None:
    other = CONFIG.read_text(encoding="utf-8").replace(
        'returns = ["private:mail", "untrusted:mail"]', 'returns = ["private:mail"]'
    )
    manifest = written(tmp_path, "other.toml", other)
    attack = TRANSCRIPTS / "anthropic_mail_attack.json"
    found = report(attack, "--config", CONFIG, "--manifest", manifest)
    assert found["totals"]["changed"] == 1
    assert found["transcripts"][0]["calls"][2]["beside"] == [{"verdict": "allow", "codes": []}]
    assert found["with"]["manifest"] != found["beside"]["manifest"]
    control = tmp_path / "controls"
    control.mkdir()
    written(control, "no_mail.rego", NO_MAIL)
    found = report(attack, "--config", CONFIG, "--policy", control)
    assert found["totals"]["changed"] == 1
    assert found["transcripts"][0]["calls"][0]["beside"] == [{"verdict": "deny", "codes": ["no_mail"]}]
    done = run(attack, "--config", CONFIG, "--policy", control)
    assert "would change" in done.stdout
    assert "1 calls would be decided otherwise beside" in done.stdout
    same = report(attack, "--config", CONFIG)
    assert (same["beside"], same["totals"]["changed"]) == (None, None)


NO_MAIL = """# METADATA
# title: No mail
# description: Mail is not read.
# custom:
#   code: no_mail
#   model: Mail is not read here.
package controls.no_mail

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if input.tool.name in {"read_file", "fetch_page"}
"""


def test_a_manifest_alone_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = report(TRANSCRIPTS / "chat_issue_attack.jsonl", "--manifest", CONFIG)
    assert (found["beside"], found["totals"]["verdicts"]["deny"]) == (None, 1)
    done = run(TRANSCRIPTS / "chat_issue_attack.jsonl")
    assert done.exit_code == 2
    assert "interlock init" in done.stderr
    written(tmp_path, "interlock.toml", CONFIG.read_text(encoding="utf-8"))
    assert run(TRANSCRIPTS / "chat_issue_attack.jsonl").exit_code == 0


def test_totals_per_tool_and_per_control() -> None:
    found = report(*sorted(TRANSCRIPTS.glob("*.json*")), "--config", CONFIG)["totals"]
    assert found["calls"] == 20
    assert found["hosted"] == 1
    assert found["tools"]["create_pull_request"] == {"deny": 1, "allow": 1}
    assert found["controls"]["trifecta"] == {"decided": 3, "objected_too": 0}
    assert sum(sum(one.values()) for one in found["tools"].values()) == found["calls"]
    short = run(*sorted(TRANSCRIPTS.glob("*.json*")), "--config", CONFIG, "--totals")
    assert "anthropic_mail_attack.json" not in short.stdout
    assert "20 calls: 17 allow, 0 ask, 3 deny; 3 of the refused were made in the record" in short.stdout


def test_every_assumption_is_said(tmp_path: Path) -> None:
    refusal = "Not done: this call was denied by the security policy."
    image = user("see", images=[{"media_type": "image/png"}])
    messages = [image, answers(9), assistant(use(1, "now")), answers(1, text=refusal)]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, messages)))
    said = " ".join(report(path, "--config", CONFIG)["assumed"])
    for word in ("--untyped", "external", "attached (1)", "no recorded call (1)", "refusals (1)", "--trust-refusals"):
        assert word in said
    said = " ".join(report(path, "--config", CONFIG, "--untyped", "--trust-refusals")["assumed"])
    assert "no text in the user's role (1) was typed" in said
    assert "were not run" in said


def test_what_strangers_wrote_can_not_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202eevil"
    admitted = {"interlock": 1, "role": "admitted", "labels": ["untrusted:x"], "source": evil}
    messages = [admitted, assistant(use(1, evil), use(2, "[red]"))]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, messages)))
    done = run(path, "--config", CONFIG)
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "(malformed)" in done.stdout


def test_nothing_is_executed_and_no_text_is_repeated(tmp_path: Path) -> None:
    secret = "the-secret-of-the-house"
    messages = [
        user(f"my word is {secret}"),
        assistant(use(1, "send", to="eve@stranger.example", body=secret)),
        answers(1, text=secret),
    ]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, messages)))
    for more in ([], ["--json"]):
        assert secret not in run(path, "--config", CONFIG, *more).output


# --- long runs --------------------------------------------------------------------------------------------------------


def generated(calls: int, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, str(TRANSCRIPTS / "generate.py"), str(calls)], capture_output=True, text=True, check=True
    )
    return written(folder, f"long{calls}.jsonl", done.stdout)


def test_five_thousand_calls(tmp_path: Path) -> None:
    path = generated(5000, tmp_path)
    done = run(path, "--config", CONFIG, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["totals"]["calls"] == 5000
    assert done.stderr.splitlines() == [f"interlock: {n}000 of 5000 calls" for n in range(1, 6)]
    (calls,) = (one["calls"] for one in found["transcripts"])
    assert [one["number"] for one in calls] == list(range(1, 5001))
    assert {one["code"] for one in calls} >= {"allowed", "trifecta", "invalid_call", "talks_back"}
    assert {one["recorded"] for one in calls} == {"result", "none"}


def test_time_and_memory_grow_with_the_calls_and_not_faster(tmp_path: Path) -> None:
    """By counting: functions entered, and bytes held at the worst moment."""
    entered, held = [], []
    for calls in (300, 1500):
        recording = read_transcript(generated(calls, tmp_path))
        entered.append(counted(recording))
        tracemalloc.start()
        kept = list(replay(recording, [one_side(Manifest.load(CONFIG))], Assumptions(), Noticed()))
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(kept) == calls
    assert entered[1] < 1.5 * 5 * entered[0]
    assert held[1] < 1.5 * 5 * held[0]


def counted(recording: Transcript) -> int:
    sides = [one_side(Manifest.load(CONFIG))]
    profile = Profile()
    profile.enable()
    for _ in replay(recording, sides, Assumptions(), Noticed()):
        pass
    profile.disable()
    entered: int = Stats(profile).total_calls  # type: ignore[attr-defined]  # not in the stubs
    return entered


def test_calls_without_a_result_do_not_pile_up() -> None:
    entered = []
    for calls in (40, 200):
        messages = [assistant(use(number, "read_mail")) for number in range(calls)]
        entered.append(counted(transcript("t", "t", interlock_messages.recorded(messages))))
    assert entered[1] < 1.2 * 5 * entered[0]


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    shown = re.findall(r"```console\n\$ interlock (replay .*?)\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 2
    for command, output in shown:
        done = CliRunner().invoke(cli, command.split())
        assert done.exit_code == 0
        digests = re.compile(r"\b[0-9a-f]{12}\b")
        assert digests.sub("…", done.stdout) == digests.sub("…", output)
