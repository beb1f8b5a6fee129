"""Case 25: a place that several accounts share is declared as if nobody else could read it.

A label in a package cache, a note in a queue, the name of a branch: each was "only a write" and was a two-way channel.
The linter names every tool that writes where others read and declares no egress. The honest twins declare the egress,
open a channel, or write where nobody else looks; and the story itself is told in the scenario of the same number.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Manifest
from interlock.model.manifest_lint import lint_manifest

SHARED = [
    "cache_set_metadata",
    "queue_push",
    "publish_gist",
    "edit_wiki_page",
    "create_calendar_event",
    "createBranch",
    "add_comment",
    "tag_release",
    "set_status_message",
    "update_package_metadata",
]


def rules(name: str, **changes: Any) -> list[str]:
    entry = {"returns": [], "egress": "none", "effect": "write", **changes}
    return [one.rule for one in lint_manifest(Manifest.parse({"version": 1, "tools": {name: entry}}))]


@pytest.mark.parametrize("name", SHARED)
def test_attack_a_shared_place_without_egress_is_a_finding(name: str) -> None:
    assert "shared-place" in rules(name)
    assert "shared-place" in rules(name, effect="destroy")


@pytest.mark.parametrize("name", SHARED)
def test_honest_a_declared_way_out_is_none(name: str) -> None:
    assert "shared-place" not in rules(name, egress="chosen", content=["text"])
    assert "shared-place" not in rules(name, opens=["egress:cache"])
    assert "shared-place" not in rules(name, effect="none")


@pytest.mark.parametrize("name", ["write_file", "save_draft", "delete_mail", "set_volume"])
def test_honest_a_place_of_ones_own(name: str) -> None:
    assert rules(name) == []
