"""Cases 125 and 126: a policy reads the environment, asks the network, or answers differently the next time.

A builtin that gives all variables of the environment would put secrets into a message; one that knows the time or
chance makes a decision that nobody can replay. Builtins are allowed by a list, a `with` that exchanges one is refused,
and the time comes in as a value. The honest twin reads that value, and the same document gives the same answer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from interlock import Interlock, MemoryJournal
from interlock.assembly import FixedClock
from interlock.errors import PolicyError
from interlock.model.canonical import pack
from interlock.policy.builtins import ALLOWED
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.samples import SAMPLES
from tests.cases.desk import CONTROL, MANIFEST, bundle, did, fresh, got, locked, mine

OUTSIDE = [
    "opa.runtime().env.PATH",
    'http.send({"method": "GET", "url": "https://evil.test"}).status_code == 200',
    'net.lookup_ip_addr("evil.test")',
    'net.cidr_contains("10.0.0.0/8", "10.1.1.1")',
    'rego.parse_module("x", "package x")',
    "time.now_ns() > 0",
    'rand.intn("x", 2) == 1',
    'uuid.rfc4122("x")',
    'trace("x")',
    "print(input)",
    'io.jwt.decode("x")',
    'crypto.x509.parse_certificates("x")',
    "providers.aws.sign_req({}, {}, 1)",
    'sprintf("%100000000d", [1])',
    "numbers.range(1, 100000000)",
]


@pytest.mark.parametrize("body", OUTSIDE)
def test_attack_nothing_of_the_outside_is_on_the_list(tmp_path: Path, body: str) -> None:
    with pytest.raises(PolicyError, match=r"is not allowed in controls|can't be called"):
        locked(policies=[mine(tmp_path, body)])


@pytest.mark.parametrize(
    "family", ["http", "opa", "net", "rand", "uuid", "io", "crypto", "providers", "rego", "trace", "print"]
)
def test_attack_no_name_of_such_a_family_is_allowed(family: str) -> None:
    assert not {name for name in ALLOWED if name.partition(".")[0] == family}
    assert "time.now_ns" not in ALLOWED


@pytest.mark.parametrize(
    "body",
    [
        'data.interlock.controls.trifecta.verdict.verdict == "allow" with input.forecast.private as []',
        "count([1]) == 1 with count as http.send",
        'startswith("x", "x") with startswith as opa.runtime',
        "input.tool.known with data.settings as {}",
    ],
)
def test_attack_no_exchange_of_what_is_judged(tmp_path: Path, body: str) -> None:
    with pytest.raises(PolicyError, match="`with` has no place in a control"):
        locked(policies=[mine(tmp_path, body)])


@pytest.mark.parametrize(
    "text",
    [
        CONTROL + "x.now_ns() > 0\n\nx := time\n",
        CONTROL.replace("\n\n", "\n\nimport data.time as t\n\n", 1) + "t.now_ns() > 0\n",
        CONTROL + '[f | some f in ["time"]][0].now_ns() > 0\n',
        CONTROL + "input.tool.known == true\n\ntime := 1\n",
    ],
)
def test_attack_no_other_name_for_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.rego").write_text(text)
    with pytest.raises(PolicyError):
        locked(policies=[tmp_path])


HOURS = """clock := time.clock(time.parse_rfc3339_ns(input.now))
	clock[0] in {9, 10, 11}"""


def test_honest_the_time_comes_in_as_a_value(tmp_path: Path) -> None:
    policies = [mine(tmp_path, HOURS)]
    for hour, verdict in ((10, "allow"), (22, "deny")):
        clock = FixedClock(datetime(2026, 11, 30, hour, tzinfo=UTC))
        lock = Interlock(manifest=MANIFEST, journal=MemoryJournal(), policies=policies, clock=clock)
        assert got(did(fresh(lock), "calc"))[0] == verdict


def test_honest_the_same_document_gives_the_same_answer() -> None:
    engines = [EmbeddedEngine(bundle(CONTROL + "{\n\t" + HOURS + "\n}\n")) for _ in range(2)]
    for sample in SAMPLES.values():
        document = pack(sample)
        answers = {engine.evaluate(document) for engine in engines for _ in range(3)}
        assert len(answers) == 1
    assert engines[0].revision == engines[1].revision


def test_honest_the_same_call_has_the_same_digest_of_its_document() -> None:
    clock = FixedClock(datetime(2026, 11, 30, 10, tzinfo=UTC))
    guard = fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal(), clock=clock))
    assert len({did(guard, "calc", {"expression": "1"}).decision.document for _ in range(3)}) == 1
    assert did(guard, "calc", {"expression": "2"}).decision.document != did(guard, "calc").decision.document
