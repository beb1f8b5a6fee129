"""Proves what the page says of proposals: on lists of real servers they miss no tool that sends, and little else.

Mutations that this file is shown to catch: a word taken from the tables of sending, reading for what has no known verb.
"""

from __future__ import annotations

import json

import pytest

from interlock.model.classified import classify
from interlock.model.listed import read_listing
from tests.catalog.measuring import HERE, RECORDED, known, measured, recorded, together


def test_there_are_lists_of_many_servers() -> None:
    assert len(RECORDED) >= 20
    assert len({recorded(name).package for name in RECORDED}) == len(RECORDED)
    assert all(recorded(name).version and recorded(name).identity.name for name in RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_no_tool_that_sends_is_missed(name: str) -> None:
    """Acceptance: zero legs missed on `egress`."""
    assert not [tool for tool, leg in measured(name).names_missed if leg == "egress"]


def test_recall_and_precision_are_what_they_were() -> None:
    """Recall may not fall at all, precision not below what makes proposals useful."""
    every = together()
    assert every.recall("egress") == 1.0
    assert every.recall("untrusted") == 1.0
    assert every.names_missed == ()
    assert (every.precision("untrusted") or 0) > 0.75
    assert (every.precision("private") or 0) > 0.75
    assert (every.precision("egress") or 0) > 0.5


@pytest.mark.parametrize("name", RECORDED)
def test_no_proposal_is_without_a_leg(name: str) -> None:
    for one in classify(recorded(name), "s").tools:
        assert "untrusted" in one.legs, one.tool.name
        assert one.reasons


@pytest.mark.parametrize("name", RECORDED)
def test_the_list_is_what_the_catalogue_was_written_from(name: str) -> None:
    """Every tool, and every argument of it; so the server is recognised and nothing of it is proposed."""
    found = classify(recorded(name), "s", (known(name),))
    assert found.known is not None
    assert {one.tool.name for one in found.tools} == set(known(name).entries)
    assert {one.origin for one in found.tools} == {"catalogue"}
    for one in found.tools:
        assert list(one.entry["arguments"]) == list(one.tool.names)


# --- servers that nobody had looked at when the words were chosen -----------------------------------------------------

# Tools that were proposed without egress, read one by one: each only looks into the person's own account.
LOOKS = {
    "airtable": {"list_records", "list_bases", "list_tables", "describe_table", "get_record", "list_comments"},
    "atlassian-bitbucket": set(),
    "exa": set(),
    "mongodb": {"list-databases", "list-connections", "list-knowledge-sources"},
    "slack-zencoder": {
        "slack_list_channels",
        "slack_get_channel_history",
        "slack_get_thread_replies",
        "slack_get_users",
        "slack_get_user_profile",
    },
}


def test_no_tool_that_sends_is_missed_on_lists_that_were_recorded_afterwards() -> None:
    count = 0
    for name, looks in LOOKS.items():
        listing = read_listing(json.loads((HERE / "unseen" / f"{name}.json").read_text(encoding="utf-8")), name)
        found = classify(listing, "s")
        count += len(found.tools)
        assert {one.tool.name for one in found.tools if "egress" not in one.legs} <= looks, name
    assert count == 59
