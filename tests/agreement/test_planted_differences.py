"""The agreement suite finds what it is there for: three planted differences, and the scenario of each fails and passes
where it should.

One in a copy of a policy, one in the reference, one in an engine (which takes 0 for false). Each is so small that no
sample shows it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from interlock.assembly import interlock_for
from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy import reference
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.reference import ReferenceEngine, at, same
from interlock.policy.samples import SAMPLES
from interlock.policy.sources import shipped_sources
from interlock.scenarios import asked, load_scenario, run_file
from interlock.testing.agreement import Disagreement, as_scenario, compare, main, search
from interlock.testing.engines import differences
from tests.agreement.asking import OpaEngine, asked_opa

EXAMPLES = 60


def shipped() -> Bundle:
    return assemble(shipped_sources(), parse_settings({}))


def oracle(bundle: Bundle) -> ReferenceEngine:
    return ReferenceEngine(parse_settings({}).model_dump(), bundle.controls)


def in_a_policy() -> Any:
    """`split_exfiltration` takes a quoted word for a number of sends: a proof more."""
    bundle = shipped()
    code = "split_exfiltration"
    old, new = "lifted if input.call.drip == false", 'lifted if input.call.drip in {false, "false"}'
    changed = tuple(
        replace(one, text=one.text.replace(old, new)) if f"/{code}." in one.path else one for one in bundle.sources
    )
    assert changed != bundle.sources, f"{old!r} does not stand in {code} any more"
    return replace(bundle, sources=changed, revision="sha256:planted")


def in_the_reference(document: Any, settings: Any) -> dict[str, Any]:
    """`credential_egress` forgets that opening a channel is sending."""
    lifted = same(at(document, "tool.egress"), "none") or same(at(document, "forecast.credentials"), False)
    return {"verdict": "allow"} if lifted else {"verdict": "ask", "remedies": ["new_conversation"]}


class Lossy(EmbeddedEngine):
    """An engine that reads numbers as some languages do: 0 is false."""

    name = "lossy"  # type: ignore[misc]

    def evaluate(self, document: bytes) -> str:
        value = orjson.loads(document)
        if isinstance(value, dict) and isinstance(value.get("call"), dict) and value["call"].get("credentials") == 0:
            value["call"]["credentials"] = False
        return super().evaluate(pack(value))


def found_between(first: Any, second: Any) -> Disagreement:
    found = search(first, second, EXAMPLES)
    assert found is not None, "nobody noticed"
    return found


def samples_agree(first: Any, second: Any) -> bool:
    for sample in SAMPLES.values():
        compare(first, second, pack(sample))
    return True


def kept(found: Disagreement, tmp_path: Path) -> Path:
    file = tmp_path / "disagreement.yaml"
    file.write_text(as_scenario(found), encoding="utf-8")
    return file


def test_t13_a_difference_in_a_policy_is_found(tmp_path: Path) -> None:
    planted = EmbeddedEngine(in_a_policy())
    assert samples_agree(oracle(shipped()), planted)
    found = found_between(oracle(shipped()), planted)
    assert found.codes == ("split_exfiltration",)
    file = kept(found, tmp_path)
    assert [report.passed for report in run_file(file, interlock_for)] == [True]
    (step,) = load_scenario(file).stories["disagreement"].steps
    assert step.asked is not None
    assert asked(planted, step.asked)[1] == "document: split_exfiltration answered otherwise"


def test_t13_a_difference_in_a_policy_is_found_by_a_real_opa() -> None:
    bundle = in_a_policy()
    with asked_opa() as server:
        found = search(oracle(shipped()), OpaEngine(server, bundle), EXAMPLES)
    assert found is not None
    assert found.names == ("reference", "opa")
    assert found.codes == ("split_exfiltration",)


def test_t13_a_difference_in_the_reference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "CONTROLS", {**reference.CONTROLS, "credential_egress": in_the_reference})
    found = found_between(oracle(shipped()), EmbeddedEngine(shipped()))
    assert found.codes == ("credential_egress",)
    assert samples_agree(oracle(shipped()), EmbeddedEngine(shipped()))
    # What the first said is expected, and the first is wrong here: the shipped engine fails the scenario.
    (report,) = run_file(kept(found, tmp_path), interlock_for)
    assert report.problems[0].endswith("steps[0]: document: credential_egress answered otherwise")


def test_t13_a_difference_in_an_engine_is_found(tmp_path: Path) -> None:
    bundle = shipped()
    lossy = Lossy(bundle)
    assert samples_agree(EmbeddedEngine(bundle), lossy)
    found = found_between(EmbeddedEngine(bundle), lossy)
    assert found.codes == ("secret_read",)
    assert [report.passed for report in run_file(kept(found, tmp_path), interlock_for)] == [True]
    # Shrunk: everything that does not matter is as it is in a harmless call.
    value = orjson.loads(found.raw)
    assert value["call"]["credentials"] == 0
    assert differences(value) == "forecast.untrusted = ['unknown']"  # and 0, which Python takes for False


def loud(bundle: Bundle) -> Lossy:
    return Lossy(bundle)


def test_the_command_writes_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "interlock.toml").write_text('version = 1\n[tools.fetch]\nreturns = []\negress = "none"\n')
    written = tmp_path / "found.yaml"
    arguments = [str(tmp_path / "interlock.toml"), "--examples", str(EXAMPLES), "--write", str(written)]
    assert main([*arguments, "--engine", f"{__name__}:loud"]) == 1
    assert f"written to {written}" in capsys.readouterr().err
    assert [report.passed for report in run_file(written, interlock_for)] == [True]
    assert main([*arguments, "--engine", "no.such.module:engine"]) == 2


@pytest.mark.parametrize("text", ['é😀\u2028\x7f\x85\ufeff\\"', "plain", "\ud7ff\ue000"])
def test_text_of_any_alphabet_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    raw = pack({"call": {"arguments": {text: [text, 1e-7, 1.0, 0.1]}}})
    file = kept(Disagreement(("one", "other"), raw, (None, {})), tmp_path)
    (step,) = load_scenario(file).stories["disagreement"].steps
    assert step.asked is not None
    assert orjson.loads(step.asked.document) == orjson.loads(raw)
    assert pack(orjson.loads(step.asked.document)) == raw
    assert step.asked.expect == "deny" and step.asked.code == "engine_error"  # noqa: PT018 - one answer
