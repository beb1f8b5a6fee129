"""Bundles as files: what `interlock bundle build` writes, OPA serves and the embedded engine loads.

A bundle holds everything that decides: the shipped controls word for word, the operator's controls and libraries, and
the settings as data. It is made of these files and no others:

    .manifest                     revision, roots, version of Rego
    .signatures.json              only if it is signed
    data.json                     {"settings": …}
    interlock/…                   the shipped controls and the entry point
    controls/<code>/<code>.rego   the operator's controls
    lib/<name>/<number>.rego      what they share
    schemas/<number>/…            schemas of the operator's settings; for Interlock, OPA passes over them

Its revision is that of the same controls and settings in the embedded engine, so whoever gets an answer from an OPA
server can tell which policy gave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.errors import Misconfigured, NotCanonical, PolicyError
from interlock.model.canonical import pack, parse
from interlock.model.settings import Settings, parse_settings
from interlock.policy.archives import files_of, read_archive, written
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.rego_ast import parse_module
from interlock.policy.signatures import SIGNATURES, BadSignature, Key, check_signature
from interlock.policy.sources import MAX_FILE_BYTES, SCHEMA, Source, shipped_sources

MANIFEST: Final = ".manifest"
DATA: Final = "data.json"
# All of it, also where nothing stands yet: another bundle of the same server must not add controls or settings.
ROOTS: Final = ("controls", "interlock", "lib", "settings")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle says about itself."""

    revision: str
    roots: tuple[str, ...]
    rego_version: int


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """A bundle that was read and passed every check.

    Attributes:
        settings: as :func:`parse_settings` reads them.
        bundle: ready for any engine; its revision is the manifest's.
    """

    manifest: Manifest
    settings: Mapping[str, Any]
    bundle: Bundle


def bundle_files(bundle: Bundle) -> dict[str, bytes]:
    """The files of a bundle, by name. Names depend on what the files define, so the same controls give the same ones.

    Raises:
        PolicyError: it holds what a workspace brought, which is no business of a server's.
    """
    manifest = {"revision": bundle.revision, "roots": list(ROOTS), "rego_version": 1}
    files = {MANIFEST: pack(manifest), DATA: bundle.data}
    counts: dict[str, int] = {}
    for source in sorted(bundle.sources, key=lambda one: one.text):
        if source.guest:
            raise PolicyError(f"{source.path}: a bundle is the operator's; controls of a workspace can't stand in it")
        name = source.path
        if not source.own:
            kind, own_name = parse_module(source.path, source.text).package[:2]
            counts[own_name] = counts.get(own_name, 0) + 1
            file = own_name if kind == "controls" else f"{counts[own_name]:03}"
            name = f"{kind}/{own_name}/{file}.rego"
        files[name] = source.text.encode()
    for number, schema in enumerate(sorted(bundle.schemas, key=lambda one: one.text), 1):
        files[f"schemas/{number:03}/{SCHEMA}"] = schema.text.encode()
    return files


def build(bundle: Bundle) -> bytes:
    """The archive. The same controls and settings give the same bytes, on any machine.

    Raises:
        PolicyError: see :func:`bundle_files`; or the archive does not read back as what went in.
    """
    data = written(bundle_files(bundle))
    again = contents(files_of(data, "the bundle"), "the bundle").bundle
    if again.revision != bundle.revision:
        raise PolicyError("the bundle does not read back as what was built; this is a mistake of Interlock's")
    return data


def open_bundle(path: Path, key: Key | None = None) -> OpenBundle:
    """Read a bundle and check everything.

    Args:
        key: what it must be signed with. Without one it must not be signed, as in OPA: a signature that nobody checks
            would be taken for one that somebody did.

    Raises:
        BadSignature: it is not signed with the key, or signed and there is no key.
        PolicyError: anything else is wrong with it.
        SettingsError: its settings are.
    """
    files = files_of(read_archive(path), str(path))
    # INVARIANT: nothing in a bundle is parsed before its signature was checked.
    if key is not None:
        check_signature(files, key, str(path))
    elif SIGNATURES in files:
        raise BadSignature(f"{path}: it is signed, and no key to verify it with was named")
    return contents(files, str(path))


def contents(files: Mapping[str, bytes], shown: str) -> OpenBundle:
    """What the files of a bundle hold, checked like any controls that are loaded; signatures are not looked at.

    Raises:
        PolicyError: a file too many or too few, a shipped control that is not this release's, a revision that is not
            that of the contents, and whatever the loader refuses.
        SettingsError: the settings are wrong.
    """
    manifest = read_manifest(files, shown)
    if len(set(manifest.roots)) != len(manifest.roots) or set(manifest.roots) != set(ROOTS):
        raise PolicyError(f"{shown}: roots are {list(manifest.roots)}; a bundle of Interlock has exactly {list(ROOTS)}")
    if manifest.rego_version != 1:
        raise PolicyError(f"{shown}: written in version {manifest.rego_version} of Rego; Interlock speaks version 1")
    sources, schemas = _texts(files, shown)
    settings = _settings(files, shown)
    bundle = assemble(sources, parse_settings(settings), schemas)
    if bundle.revision != manifest.revision:
        raise PolicyError(
            f"{shown}: the revision {manifest.revision!r} is not that of its contents, {bundle.revision};"
            " it was changed after it was built; build it again"
        )
    return OpenBundle(manifest, settings, bundle)


def read_manifest(files: Mapping[str, bytes], shown: str) -> Manifest:
    """The manifest, read strictly.

    Raises:
        PolicyError: it is missing, or says something that Interlock does not know.
    """
    value = _json(files, MANIFEST, shown)
    if set(value) != {"revision", "roots", "rego_version"}:
        raise PolicyError(f"{shown}: {MANIFEST} must hold revision, roots and rego_version, and holds {sorted(value)}")
    roots = value["roots"]
    if not isinstance(value["revision"], str) or type(value["rego_version"]) is not int or not isinstance(roots, list):
        raise PolicyError(f"{shown}: {MANIFEST}: a value has the wrong type")
    if not all(isinstance(one, str) for one in roots):
        raise PolicyError(f"{shown}: {MANIFEST}: roots are texts")
    return Manifest(value["revision"], tuple(roots), value["rego_version"])


def _texts(files: Mapping[str, bytes], shown: str) -> tuple[list[Source], list[Source]]:
    """Controls and schemas. What counts is what a file says and not what it is called, since `opa build` moves files.

    What stands in our name must be ours: a bundle can't soften a shipped control, or leave one out.
    """
    missing = {one.text: one for one in shipped_sources()}
    sources: list[Source] = []
    schemas: list[Source] = []
    for name, data in sorted(files.items()):
        if name in (MANIFEST, SIGNATURES, DATA):
            continue
        schema = name.startswith("schemas/") and name.endswith(f"/{SCHEMA}")
        # Tests, plans, patches, data of a package and whatever else OPA would load or pass over has no place in it.
        if not schema and (not name.endswith(".rego") or name.endswith("_test.rego")):
            raise PolicyError(f"{shown}: {name} has no place in a bundle of Interlock")
        if len(data) > MAX_FILE_BYTES:
            raise PolicyError(f"{shown}: {name} is larger than {MAX_FILE_BYTES} bytes")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise PolicyError(f"{shown}: {name} is not UTF-8") from None
        shipped = None if schema else missing.pop(text, None)
        (schemas if schema else sources).append(shipped or Source(f"{shown}/{name}", text))
    if missing:
        paths = ", ".join(sorted(one.path for one in missing.values()))
        raise PolicyError(
            f"{shown}: missing, or not as this release of Interlock ships it: {paths};"
            " build the bundle with the release that loads it"
        )
    return sources, schemas


def _settings(files: Mapping[str, bytes], shown: str) -> dict[str, Any]:
    value = _json(files, DATA, shown)
    settings = value.get("settings")
    if set(value) != {"settings"} or not isinstance(settings, dict) or set(settings) != set(Settings.model_fields):
        raise PolicyError(f"{shown}: {DATA} must hold all settings of this release of Interlock, and nothing else")
    return settings


def _json(files: Mapping[str, bytes], name: str, shown: str) -> dict[str, Any]:
    if name not in files:
        raise PolicyError(f"{shown}: it has no {name}, so it is no bundle of Interlock")
    try:
        value = parse(files[name].decode("utf-8"))
    except (NotCanonical, UnicodeDecodeError) as error:
        raise PolicyError(f"{shown}: {name} can't be read: {error}") from None
    if not isinstance(value, dict):
        raise PolicyError(f"{shown}: {name} is not an object")
    return value


def problem_of(files: Mapping[str, bytes], shown: str) -> str:
    """Why these files would not load, or nothing."""
    try:
        contents(files, shown)
    except Misconfigured as error:
        return str(error)
    return ""
