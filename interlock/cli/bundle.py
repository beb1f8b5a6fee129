"""``interlock bundle``: controls and settings as one archive, for OPA servers and for the embedded engine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.markup import escape
from rich.table import Table

from interlock.assembly import Parts, bundled, read_configuration
from interlock.cli.output import console, existing, json_option, print_json
from interlock.errors import Misconfigured, SettingsError
from interlock.model.manifest import Manifest as Tools
from interlock.policy.archives import files_of, read_archive, written
from interlock.policy.bundle_files import MANIFEST, OpenBundle, build, contents, problem_of, read_manifest
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.publishing import Access, put_address, put_file
from interlock.policy.signatures import ALGORITHMS, SIGNATURES, BadSignature, Key, check_signature, read_key, signed

_F = TypeVar("_F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
archive_argument = click.argument("archive", metavar="BUNDLE", type=_PATH)
key_option = click.option("--key-file", type=_PATH, help="The key: PEM, or for HS… the secret, byte for byte.")


def key_options(command: _F) -> _F:
    """How the key is used; all of it is the operator's to say, and nothing of it is taken from the bundle."""
    for option in (
        click.option("--scope", default="", metavar="TEXT", help="What the signature is for; equal on both sides."),
        click.option("--key-id", default="", metavar="NAME", help="Which of several keys."),
        click.option("--algorithm", type=click.Choice(ALGORITHMS), default="RS256", show_default=True),
    ):
        command = option(command)
    return command


@click.group()
def bundle() -> None:
    """Build, sign, verify, push and look into bundles, which OPA serves."""


@bundle.command("build", short_help="Make a bundle of controls and settings.")
@click.argument("configuration", type=_PATH, required=False)
@click.option("--policies", type=_PATH, multiple=True, help="A folder or archive of your own controls; repeatable.")
@click.option("--settings", "settings_file", type=_PATH, help="A .toml or .yaml file with settings.")
@click.option("--preset", metavar="NAME", help="Values of the settings that are not written.")
@click.option("--out", "-o", type=_PATH, default=Path("bundle.tar.gz"), show_default=True, help="The archive.")
@json_option
def build_command(
    configuration: Path | None,
    policies: tuple[Path, ...],
    settings_file: Path | None,
    preset: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Make a bundle of the shipped controls and what CONFIGURATION (interlock.toml) names, or the options instead.

    The same controls and settings give the same bytes, and the revision that the embedded engine has for them.
    """
    parts = _named(configuration, policies, settings_file, preset)
    _, checked = bundled(parts)
    EmbeddedEngine(checked)
    data = build(checked)
    changed = put_file(data, out)
    if as_json:
        print_json({"file": str(out), "revision": checked.revision, "bytes": len(data), "changed": changed})
    else:
        console().print(f"{escape(str(out))}: revision {checked.revision}" + ("" if changed else ", as it was"))


def _named(
    configuration: Path | None, policies: tuple[Path, ...], settings_file: Path | None, preset: str | None
) -> Parts:
    """Controls and settings, by the configuration or by the options: mixed, nobody could say which of them counts."""
    options = policies or settings_file is not None or preset is not None
    if options and configuration is not None:
        raise Misconfigured("give a configuration, or --policies, --settings and --preset; not both")
    if options:
        settings = {} if settings_file is None else _settings(settings_file)
        if preset is not None and settings.setdefault("preset", preset) != preset:
            raise SettingsError(f"{settings_file}: names the preset {settings['preset']!r}, and --preset another one")
        return Parts(Tools({}), policies=tuple(one.absolute() for one in policies), settings=settings)
    file = existing(configuration or Path("interlock.toml"))
    chosen, folder = read_configuration(file)
    if chosen.bundle is not None:
        raise Misconfigured(f"{file}: its controls come from a bundle already, {chosen.bundle.file}")
    return Parts(
        Tools({}), policies=tuple((folder / one).absolute() for one in chosen.policies), settings=chosen.settings
    )


def _settings(file: Path) -> dict[str, Any]:
    from interlock.model.markup import read

    if file.suffix not in (".toml", ".yaml", ".yml"):
        raise SettingsError(f"{file}: must be a .toml, .yaml or .yml file")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"{file}: can't be read") from None
    return read(text, "toml" if file.suffix == ".toml" else "yaml", str(file), SettingsError)


@bundle.command("sign", short_help="Sign a bundle in OPA's format.")
@archive_argument
@click.option("--key-file", type=_PATH, required=True, help="The private key: PEM, or for HS… the secret.")
@key_options
@click.option("--out", "-o", type=_PATH, help="The signed archive; by default BUNDLE itself.")
@json_option
def sign_command(
    archive: Path, key_file: Path, algorithm: Any, key_id: str, scope: str, out: Path | None, as_json: bool
) -> None:
    """Sign BUNDLE in OPA's format. A signature that is there already is replaced.

    What does not load is not signed.
    """
    files = {name: data for name, data in _files(archive).items() if name != SIGNATURES}
    found = contents(files, str(archive))
    key = read_key(key_file, algorithm, key_id, scope)
    target = out or archive
    put_file(written({**files, SIGNATURES: signed(files, key)}), target)
    if as_json:
        print_json({"file": str(target), "revision": found.bundle.revision, "algorithm": algorithm, "key_id": key_id})
    else:
        console().print(f"{escape(str(target))}: revision {found.bundle.revision}, signed with {algorithm}")


@bundle.command("verify", short_help="Hold a bundle against its signature.")
@archive_argument
@click.option("--key-file", type=_PATH, required=True, help="The public key: PEM, or for HS… the secret.")
@key_options
@json_option
def verify_command(archive: Path, key_file: Path, algorithm: Any, key_id: str, scope: str, as_json: bool) -> None:
    """Hold BUNDLE against its signature, and check that it would load.

    Exit code 1: it is not what was signed, or would not load. 2: it or the key can't be read.
    """
    key = read_key(key_file, algorithm, key_id, scope)
    files = _files(archive)
    problem, revision = "", ""
    try:
        check_signature(files, key, str(archive))
    except BadSignature as error:
        problem = str(error)
    if not problem:
        problem = problem_of(files, str(archive))
    if not problem:
        revision = read_manifest(files, str(archive)).revision
    if as_json:
        print_json({"verified": not problem, "revision": revision, "problem": problem})
    else:
        told = f"[red]not verified[/red] {_safe(problem)}" if problem else f"verified, revision {revision}"
        console().print(told)
    raise SystemExit(1 if problem else 0)


@bundle.command("push", short_help="Put a bundle where OPA polls it.")
@archive_argument
@click.argument("target")
@key_option
@key_options
@click.option("--unsigned", is_flag=True, help="Push a bundle that nobody signed.")
@click.option("--token-file", type=_PATH, help="Holds a bearer token for the address.")
@click.option("--ca-file", type=_PATH, help="The authority of the server's certificate, if it is no public one.")
@click.option("--plaintext", is_flag=True, help="Speak HTTP to another machine.")
@click.option("--no-read-back", is_flag=True, help="For an address that can only be written to.")
@json_option
def push_command(
    archive: Path,
    target: str,
    key_file: Path | None,
    algorithm: Any,
    key_id: str,
    scope: str,
    unsigned: bool,
    token_file: Path | None,
    ca_file: Path | None,
    plaintext: bool,
    no_read_back: bool,
    as_json: bool,
) -> None:
    """Put BUNDLE where OPA polls it: TARGET is a file, a folder, or an address that takes a PUT.

    It is verified first; a bundle that OPA would refuse is not pushed. Equal bytes are not written again.
    """
    if (key_file is None) != unsigned:
        raise Misconfigured("give --key-file to verify the signature with, or --unsigned; one of them")
    data = read_archive(archive)
    files = files_of(data, str(archive))
    if key_file is not None:
        check_signature(files, read_key(key_file, algorithm, key_id, scope), str(archive))
    elif SIGNATURES in files:
        raise BadSignature(f"{archive}: it is signed; give --key-file, so that what is pushed was verified")
    revision = contents(files, str(archive)).bundle.revision
    if "://" in target:
        changed = put_address(data, target, Access(token_file, ca_file, plaintext, not no_read_back))
    else:
        place = Path(target)
        changed = put_file(data, place / archive.name if place.is_dir() else place)
    if as_json:
        print_json({"revision": revision, "changed": changed, "sha256": hashlib.sha256(data).hexdigest()})
    else:
        console().print(f"revision {revision} " + ("is there now" if changed else "was there already"))


@bundle.command("inspect", short_help="Show what a bundle holds.")
@archive_argument
@key_option
@key_options
@json_option
def inspect_command(
    archive: Path, key_file: Path | None, algorithm: Any, key_id: str, scope: str, as_json: bool
) -> None:
    """Show what BUNDLE holds: revision, roots, controls, settings, and whether its signature is good.

    Exit code 1: it would not load, or the signature is not one by the key that was given.
    """
    files = _files(archive)
    shown = str(archive)
    key = None if key_file is None else read_key(key_file, algorithm, key_id, scope)
    state, bad = _signature(files, key, shown)
    problem = problem_of(files, shown)
    opened = None if problem else contents(files, shown)
    if as_json:
        print_json(_told(files, opened, state, bad or problem))
    else:
        _show(opened, state, bad or problem)
    raise SystemExit(1 if bad or problem else 0)


def _signature(files: dict[str, bytes], key: Key | None, shown: str) -> tuple[str, str]:
    """In words, and what is wrong with it."""
    if key is None:
        return ("signed, not verified" if SIGNATURES in files else "none"), ""
    try:
        check_signature(files, key, shown)
    except BadSignature as error:
        return "bad", str(error)
    return "good", ""


def _told(files: dict[str, bytes], opened: OpenBundle | None, state: str, problem: str) -> dict[str, Any]:
    told: dict[str, Any] = {"signature": state, "problem": problem, "files": sorted(files)}
    if opened is None:
        return told
    controls = opened.bundle.controls.values()
    return {
        "revision": opened.bundle.revision,
        "roots": sorted(opened.manifest.roots),
        "controls": [{"code": one.code, "title": one.title, "shipped": one.own} for one in controls],
        "settings": dict(opened.settings),
        **told,
    }


def _show(opened: OpenBundle | None, state: str, problem: str) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    if opened is not None:
        controls = opened.bundle.controls.values()
        table.add_row("revision", opened.bundle.revision)
        table.add_row("roots", ", ".join(sorted(opened.manifest.roots)))
        table.add_row("shipped controls", ", ".join(one.code for one in controls if one.own))
        table.add_row("your controls", ", ".join(one.code for one in controls if not one.own) or "none")
        for name, value in opened.settings.items():
            if value not in ([], {}):
                table.add_row(f"settings.{name}", _safe(str(value)))
    table.add_row("signature", state)
    if problem:
        table.add_row("[red]problem[/red]", _safe(problem))
    console().print(table)


def _safe(text: str) -> str:
    """A text out of a bundle, which must not steer a terminal."""
    return escape("\n".join(line if line.isprintable() else ascii(line)[1:-1] for line in text.splitlines()))


def _files(archive: Path) -> dict[str, bytes]:
    files = files_of(read_archive(archive), str(archive))
    if MANIFEST not in files:
        raise Misconfigured(f"{archive}: it has no {MANIFEST}, so it is no bundle of Interlock")
    return files
