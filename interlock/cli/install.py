"""``interlock install``: write a host's configuration, after showing it, and prove that it holds."""

from __future__ import annotations

import difflib
import json
import os
import stat
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from interlock.cli.hook_probe import Probed, probe
from interlock.cli.output import console
from interlock.errors import Misconfigured
from interlock.hook import default_config
from interlock.integrations.host_reactions import UNENFORCEABLE, command_line, unenforceable
from interlock.integrations.host_settings import FORMS, merged, without
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sqlite import SqliteStore

HOSTS: Final = (*sorted(FORMS), "vscode")
SERVERS: Final = {"vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json")}

STARTER: Final = """\
# What Interlock decides by, for coding agents and whatever else names this file.
version = 1

# A coding agent reads files and pages in most sessions, so most commands would be denied. Where the agent can ask you,
# you are asked instead; where it can't, the call is denied all the same.
[settings]
trifecta = "ask"

[journal]
kind = "sqlite"
path = "interlock.db"
"""

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=None,
    help="The operator's configuration; by default interlock/interlock.toml in your configuration folder.",
)
project_option = click.option(
    "--project", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Settings of this project only."
)


@click.command()
@click.argument("host", type=click.Choice(HOSTS))
@config_option
@project_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--uninstall", is_flag=True, help="Put back what was there before, byte for byte.")
def install(host: str, config: Path | None, project: Path | None, yes: bool, uninstall: bool) -> None:
    """Put Interlock in front of HOST: show what would be written, ask, write it, and prove that it holds."""
    chosen = Path(os.path.abspath(config or default_config()))
    target = settings_of(host, project)
    # Below a name that is protected wherever it stands: who changes the record changes what is put back.
    record = chosen.parent / ".interlock" / f"installed-{host}-{_short(target)}.json"
    if uninstall:
        _uninstall(host, target, record, yes)
        return
    before = _bytes(target)
    settings = _parsed(target, before)
    wanted = _with_proxy(settings, chosen) if host in SERVERS else merged(settings, host, command_for(host, chosen))
    after = before if before is not None and wanted == settings else _json(wanted)
    out = console()
    if not chosen.exists():
        _show(chosen, None, STARTER.encode())
    if after == before:
        out.print(Text(f"{target} is as it should be already"))
    else:
        _show(target, before, after)
    if not yes and not click.confirm("Write this?", err=True):
        raise Misconfigured("nothing was written")
    _prepare(chosen)
    if after != before:
        # INVARIANT: what was there is on disk before anything is changed.
        if not record.exists():
            kept = None if before is None else b64encode(before).decode()
            _write(record, _json({"file": str(target), "before": kept, "after": b64encode(after).decode()}))
        else:
            held = json.loads(record.read_bytes())
            _write(record, _json({**held, "after": b64encode(after).decode()}))
        _write(target, after)
        out.print(Text(f"wrote {target}; what was there before is kept in {record}"))
    if host in SERVERS:
        _say_what_passes_by(settings, chosen)
        return
    shown = show_probe(probe(host, command_for(host, chosen)))
    _say_what_no_hook_can(host)
    if not shown:
        raise Misconfigured("the probe failed: the hook is installed, but does not hold; `interlock doctor` says more")


def command_for(host: str, config: Path) -> str:
    """The command that a host runs, with this interpreter."""
    return command_line(sys.executable, host, str(config), isolated=_isolated())


def _isolated() -> bool:
    """Can this interpreter find the package without looking at the environment and the person's own folder?"""
    done = subprocess.run([sys.executable, "-I", "-c", "import interlock.hook"], capture_output=True, check=False)
    return done.returncode == 0


def settings_of(host: str, project: Path | None) -> Path:
    """Where a host's settings are. A link is followed: what it leads to is what counts."""
    user, local = SERVERS[host] if host in SERVERS else (FORMS[host].file, FORMS[host].local)
    return Path(os.path.realpath(Path.home() / user if project is None else project / local))


def parsed_settings(path: Path) -> dict[str, Any]:
    """Raises Misconfigured: it is there, and is no JSON object."""
    return _parsed(path, _bytes(path))


def show_probe(found: list[Probed]) -> bool:
    """Print what was tried; whether all of it went as it must."""
    for one in found:
        mark = "ok" if not one.problem else "FAILED"
        console().print(Text(f"probe: {one.what}: {mark}" + (f" ({one.problem})" if one.problem else "")))
    return not any(one.problem for one in found)


def _prepare(config: Path) -> None:
    """The configuration, and its store."""
    if not config.exists():
        config.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(config, STARTER.encode())
        store = config.parent / "interlock.db"
        fresh = not store.exists()
        SqliteStore.migrate(store)
        if fresh:  # nobody can have written an artifact before there was an Interlock here
            opened = SqliteStore(store)
            try:
                SqlArtifacts.begin(opened)
            finally:
                opened.close()
        console().print(Text(f"wrote {config} and {store}"))


def _uninstall(host: str, target: Path, record: Path, yes: bool) -> None:
    if not record.exists():
        raise Misconfigured(f"{record}: there is no record of an installation for {host}; nothing was changed")
    held = json.loads(record.read_bytes())
    before = None if held["before"] is None else b64decode(held["before"])
    now = _bytes(target)
    if now != b64decode(held["after"]):
        # Somebody has changed it since: only what is ours goes.
        left = _without_proxy(_parsed(target, now)) if host in SERVERS else without(_parsed(target, now), host)
        console().print(Text(f"{target} was changed since; only what Interlock wrote is taken out"))
        before = _json(left)
    _show(target, now, before or b"")
    if not yes and not click.confirm("Write this?", err=True):
        raise Misconfigured("nothing was written")
    if before is None:
        target.unlink(missing_ok=True)
    else:
        _write(target, before)
    record.unlink()
    console().print(Text(f"{target} is as it was"))


# --- VS Code has no hooks: the proxy stands in its list of servers ----------------------------------------------------


def _with_proxy(settings: dict[str, Any], config: Path) -> dict[str, Any]:
    servers = settings.get("servers", {})
    if not isinstance(servers, dict):
        raise Misconfigured("the servers in mcp.json are no object; correct them first")
    own = {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-m", "interlock.cli", "mcp", "proxy", "--config", str(config)],
    }
    return {**settings, "servers": {**servers, "interlock": own}}


def _without_proxy(settings: dict[str, Any]) -> dict[str, Any]:
    servers = {name: one for name, one in settings.get("servers", {}).items() if name != "interlock"}
    return {**settings, "servers": servers}


def _say_what_passes_by(settings: dict[str, Any], config: Path) -> None:
    others = sorted(name for name in settings.get("servers", {}) if name != "interlock")
    console().print(Text("VS Code has no hooks: its own tools are " + UNENFORCEABLE))
    if others:
        console().print(Text(f"these servers pass by the proxy; move them to [mcp] in {config}: {', '.join(others)}"))


def _say_what_no_hook_can(host: str) -> None:
    for fault in unenforceable(host):
        console().print(Text(f"{fault}: {UNENFORCEABLE}"))
    if host == "codex":
        console().print(Text("Codex runs hooks that you have trusted only: start it once and trust this one"))


# --- files ------------------------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misconfigured(f"{path}: can't be read: {error.strerror}") from None


def _parsed(path: Path, data: bytes | None) -> dict[str, Any]:
    if data is None or not data.strip():
        return {}
    try:
        found = json.loads(data)
    except ValueError as error:
        raise Misconfigured(f"{path}: not JSON ({error}); correct it first, nothing was written") from None
    if not isinstance(found, dict):
        raise Misconfigured(f"{path}: not a JSON object; nothing was written")
    return found


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _write(path: Path, data: bytes) -> None:
    """The whole file or none of it, with the mode that it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = 0o600
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(beside, mode)
    os.replace(beside, path)


def _show(path: Path, before: bytes | None, after: bytes) -> None:
    lines: Callable[[bytes], list[str]] = lambda data: data.decode("utf-8", "replace").splitlines()  # noqa: E731
    old = f"{path} (not there)" if before is None else str(path)
    for line in difflib.unified_diff(lines(before or b""), lines(after), old, str(path), lineterm=""):
        console().print(Text(line, style={"+": "green", "-": "red"}.get(line[:1], "")))


def _short(path: Path) -> str:
    from hashlib import sha256

    return sha256(os.fsencode(path)).hexdigest()[:12]
