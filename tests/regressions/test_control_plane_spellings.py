"""Files that decide could be named in ways that the tables did not read.

A destroying shell named the folder above the rules in its command line, a ``file:`` URL had a query, a backslash or a
space before it, a wildcard stood for the name of a protected folder, a drive or a host stood before ``.bashrc``, the
name of an argument was the file, or a whole ``.git`` was moved away with its hooks; and some files were missing in the
tables. Now all of these are read, while a plain command in the current folder is not a removal of that folder.
Mutations that this file catches: ``written``, the kinds, or the decoded forms left out of ``targets``; ``found.add``
of names or the split at colons left out of ``candidates``; ``_starts`` comparing without wildcards; fragment, query,
backslash or ``strip`` left out of ``_decoded``; ``_ends_in_beginning`` left out of ``touched``; an entry out of the
table; a dot or a bare word counted as a target.
"""

from __future__ import annotations

import pytest

from interlock import Manifest
from tests.regressions.stage import decided, says

DENIED, ASKED = "deny control_plane", "ask control_plane"
DESTROYING = Manifest.parse(
    {
        "version": 1,
        "tools": {
            name: {"returns": [], "egress": "none", "effect": "destroy", "destinations": destinations}
            for name, destinations in {
                "sh": {},
                "uri": {"uri": "url"},
                "id": {"id": "id"},
                "delete": {"path": "path"},
                "move": {"from": "path", "into": "path"},
            }.items()
        },
    }
)


def _destroys(name: str, **arguments: object) -> str:
    return says(decided(name, arguments, manifest=DESTROYING, protected=["/srv/a/rules"]))


def _writes(path: str, name: str = "path") -> str:
    tool = "write" if name == "path" else "write_uri"
    return says(decided(tool, {name: path, "text": "x"}, protected=["/srv/rules"]))


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /srv/a",
        "rm -rf /srv/a/rules",
        "rm -rf /srv",
        "cd /tmp; rm -rf '/srv/a'",
        "rm -rf file:///srv/a",
        "rm -rf file:///srv/%61",
        "mv /srv/{a,b} /tmp",
        "rm -rf /srv/a*",
        "rm -rf --one=/srv/b/../a",
    ],
)
def test_a_folder_above_in_a_command_line(command: str) -> None:
    assert _destroys("sh", command=command) == DENIED


@pytest.mark.parametrize(
    "path", ["/srv/a", "/srv", "/", "~/../../srv", "/SRV/A", "/srv/a/.", "/srv/b/../a", " /srv/a", "/srv/a*", "/s*/a"]
)
def test_a_folder_above_in_an_argument(path: str) -> None:
    assert _destroys("delete", path=path) == DENIED


def test_a_folder_above_in_any_shape_and_kind() -> None:
    assert _destroys("delete", path=["/srv/b", "/srv/a"]) == DENIED
    assert _destroys("delete", path={"x": "/srv/a"}) == DENIED
    assert _destroys("delete", path="file:///srv/a") == DENIED
    assert _destroys("delete", path="/tmp", extra="/srv/a") == DENIED
    assert _destroys("uri", uri="file:///srv/a") == DENIED
    assert _destroys("uri", uri="file://localhost/srv/%61?x#y") == DENIED
    assert _destroys("id", id="/srv/a") == DENIED
    assert _destroys("move", **{"from": "/srv/a", "into": "/tmp/b"}) == DENIED


@pytest.mark.parametrize(
    "command", ["make test", "ls .", "cat notes/readme.md", "cat /etc/hosts", "git status", "ls *"]
)
def test_honest_a_plain_command_is_no_removal(command: str) -> None:
    assert _destroys("sh", command=command) == "allow"


@pytest.mark.parametrize("path", ["/srv/b", "/srv/a/other", "/srv/ab", "notes", "/srv/a/rules2"])
def test_honest_other_folders_may_go(path: str) -> None:
    assert _destroys("delete", path=path) == "allow"
    assert _destroys("sh", command=f"rm -rf {path}") == "allow"


@pytest.mark.parametrize(
    "path",
    ["/srv/rul*/mine.rego", "/srv/rul?s", "/srv/rule[s]/mine.rego", "/srv/rules/*", "/s*v/rules/x", "/srv/r*s/"],
)
def test_wildcards_stand_for_what_they_match(path: str) -> None:
    assert _writes(path) == DENIED
    assert says(decided("bash", {"command": f"tee {path}"}, protected=["/srv/rules"])) == DENIED


def test_honest_wildcards_that_do_not_match() -> None:
    for path in ("/srv/no*/x", "/srv/rul", "/opt/rul*/x"):
        assert _writes(path) == "allow"
    assert says(decided("bash", {"command": "ls src/*.c notes/*"}, protected=["/srv/rules"])) == "allow"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///srv/rules/x#y",
        "file:///srv/rules/x?y=1",
        "file:///srv/rules#x",
        "file:///srv/rules?x",
        "file:////srv/rules/x",
        "file:\\\\srv\\rules\\x",
        "file:\\\\localhost\\srv\\rules\\x",
        "file:///srv%2frules/x",
        "file:///srv%5crules/x",
        "FILE:///srv/rules/x",
        " file:///srv/rules/x",
        "\tfile:///srv/rules/x",
        "\nfile://localhost/srv/rules/x",
    ],
)
def test_file_urls_in_every_spelling(uri: str) -> None:
    assert _writes(uri, "uri") == DENIED
    assert _writes(uri) == DENIED


def test_file_urls_of_the_agents_files() -> None:
    for uri in ("file:///home/u/.bashrc#x", "file:///home/u/.bashrc?x=1", " file:///home/u/.bashrc"):
        assert _writes(uri, "uri") == ASKED
    for uri in ("file:///home/u/notes#.txt", "file:///srv/notes?x", "https://page.example/srv/notes"):
        assert _writes(uri, "uri") == "allow"


@pytest.mark.parametrize("path", ["C:.bashrc", "localhost:.bashrc", "C:.claude\\settings.json", "host:/home/u/.bashrc"])
def test_a_drive_or_a_host_before_the_path(path: str) -> None:
    assert _writes(path) == ASKED


def test_a_host_before_a_protected_path() -> None:
    assert _writes("host:/srv/rules/x") == DENIED
    assert _writes("C:/srv/rules/x") == DENIED
    assert _writes("host:/srv/notes") == "allow"


HOLDING = [".git", ".vscode", "/home/u/.config", "/home/u/.ssh", ".github", "~/.config", ".GIT/", "file:///w/.git"]


@pytest.mark.parametrize("path", HOLDING)
def test_a_hidden_folder_goes_with_what_it_holds(path: str) -> None:
    assert _destroys("delete", path=path) == ASKED
    assert _destroys("move", **{"from": "/tmp/x", "into": path}) == ASKED
    assert _destroys("id", id=path) == ASKED
    assert _destroys("uri", uri=path) == ASKED


@pytest.mark.parametrize("path", [".git", ".vscode", "/home/u/.config", ".github"])
def test_honest_the_folder_itself_is_no_file_to_write(path: str) -> None:
    assert _writes(path) == "allow"
    assert _destroys("delete", path=f"{path}/notes") == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/authorized_keys2",
        ".git/config.worktree",
        "/etc/cron.daily/x",
        "/etc/cron.hourly/x",
        "/etc/init.d/x",
        "/usr/lib/python3/sitecustomize.py",
        "lib/usercustomize.py",
        "~/.config/Code/User/keybindings.json",
        "~/Library/Application Support/Code/User/settings.json",
        ".github/copilot-instructions.md",
    ],
)
def test_files_that_were_missing_in_the_table(path: str) -> None:
    assert _writes(path) == ASKED


@pytest.mark.parametrize(
    "path", ["~/.ssh/authorized_keys2.txt", "/etc/cron.notes", "customize.py", "code/settings.json", "instructions.md"]
)
def test_honest_files_that_only_look_like_them(path: str) -> None:
    assert _writes(path) == "allow"


def test_the_name_of_an_argument_may_be_the_file() -> None:
    assert says(decided("bash", {"interlock.toml": "x"})) == DENIED
    assert says(decided("bash", {".bashrc": "x"})) == ASKED
    assert says(decided("bash", {"files": {".bashrc": "x"}})) == ASKED
    assert says(decided("bash", {"notes.txt": "x"})) == "allow"
