"""Proves that every trifecta of an installation is found, smallest sets first, and that the one change breaks it.

Mutations that this file is shown to catch: supersets kept, a change that leaves the leg elsewhere, a server of
which nothing is known taken for harmless.
"""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from interlock.model.classified import legs_of
from interlock.model.decisions import Verdict
from interlock.model.labels import Label
from interlock.model.settings import parse_settings
from interlock.model.tools import Clause, Condition, Egress, ToolId, ToolSpec
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import shipped_sources
from interlock.policy.trifectas import LEGS, after, breaking_all, trifectas, unseen

BUNDLE = assemble(shipped_sources(), parse_settings({}))
EVALUATE = EmbeddedEngine(BUNDLE).evaluate


def spec(server: str, name: str, legs: str) -> ToolSpec:
    """``legs`` of ``u``, ``p`` and ``e``."""
    returns = [Label("untrusted:x")] * ("u" in legs) + [Label("private:x")] * ("p" in legs)
    return ToolSpec(ToolId(server, name), tuple(returns), Egress.CHOSEN if "e" in legs else Egress.NONE)


def found(*specs: ToolSpec) -> list[tuple[str, ...]]:
    return [one.servers for one in trifectas(specs, BUNDLE, EVALUATE)]


def test_three_servers_with_one_leg_each() -> None:
    tools = (spec("web", "page", "u"), spec("mail", "read", "p"), spec("chat", "post", "e"), spec("time", "now", ""))
    (one,) = trifectas(tools, BUNDLE, EVALUATE)
    assert one.servers == ("chat", "mail", "web")
    assert [str(tool) for tool in one.story] == ["web/page", "mail/read", "chat/post"]
    assert one.held is Verdict.DENY
    assert breaking_all([one])


def test_sets_with_a_smaller_one_in_them_are_not_shown() -> None:
    shell = spec("shell", "run", "upe")
    assert found(shell, spec("web", "page", "ue"), spec("mail", "read", "p")) == [("shell",), ("mail", "web")]


def test_two_legs_are_no_trifecta() -> None:
    assert found(spec("web", "page", "ue"), spec("web", "look", "u"), spec("time", "now", "")) == []
    assert found() == []


def test_a_server_of_which_nothing_is_known_has_every_leg() -> None:
    (one,) = trifectas([unseen("dark")], BUNDLE, EVALUATE)
    assert one.servers == ("dark",)
    assert str(one.breaks) == "take out dark"


def test_the_smallest_change_is_told() -> None:
    tools = [spec("mail", f"read{number}", "up") for number in range(3)] + [spec("mail", "send", "e")]
    (one,) = trifectas(tools, BUNDLE, EVALUATE)
    assert str(one.breaks) == "switch off send of mail"
    clause = Clause((Condition("url", "absent"),), spec("mail", "send", ""))
    narrow = ToolSpec(ToolId("mail", "send"), (), Egress.CHOSEN, when=(clause,))
    (one,) = trifectas([*tools[:3], narrow], BUNDLE, EVALUATE)
    assert str(one.breaks) == "let mail/send run as its clauses say only"
    many = [*tools, *(spec("mail", f"send{number}", "e") for number in range(6))]
    big = [*many, *(spec("mail", f"see{number}", "up") for number in range(6))]
    (one,) = trifectas(big, BUNDLE, EVALUATE)
    assert str(one.breaks) == "take out mail"


_SPECS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.sampled_from(["", "u", "p", "e", "up", "ue", "upe"])),
    max_size=7,
    unique_by=lambda one: one[:2],
).map(lambda many: [spec(*one) for one in many])


@given(_SPECS)
def test_exactly_the_smallest_sets_are_found_and_each_change_breaks_its_set(specs: list[ToolSpec]) -> None:
    """Against the slow answer: every set of servers, tried."""

    def possible(servers: tuple[str, ...]) -> bool:
        return {leg for one in specs if one.id.server in servers for leg in legs_of(one)} == set(LEGS)

    names = sorted({one.id.server for one in specs})
    every = [set(one) for size in range(1, 5) for one in itertools.combinations(names, size) if possible(one)]
    smallest = {tuple(sorted(one)) for one in every if not any(other < one for other in every)}
    told = trifectas(specs, BUNDLE, EVALUATE)
    assert {one.servers for one in told} == smallest
    for one in told:
        assert one.held is not Verdict.ALLOW
        here = [each for each in specs if each.id.server in one.servers]
        assert found(*after(here, [one.breaks])) == [], one
