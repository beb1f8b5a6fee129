"""Loading controls: all of a bundle, or nothing.

A bundle is the shipped controls, the user's controls and the settings. Every rule below exists because an engine would
otherwise accept the file and be silent, loose or dead later: each refusal names file, line and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from interlock.errors import PolicyError
from interlock.model.answers import ControlText
from interlock.model.canonical import pack
from interlock.model.digests import Digest, digest
from interlock.model.look import Paths
from interlock.model.markup import read
from interlock.policy.checks import Checks
from interlock.policy.rego_ast import Module, code_of, looks_at, parse_module
from interlock.policy.sources import Source
from interlock.policy.user_settings import user_settings

if TYPE_CHECKING:
    from interlock.model.settings import Settings


@dataclass(frozen=True, slots=True)
class Bundle:
    """Controls that passed every check, ready for any engine.

    Attributes:
        sources: the files, in order of their paths: the order in which they were given makes no difference (T3).
        controls: what each control says about itself, by code.
        data: JSON text of Rego's ``data``: the settings.
        revision: digest of all texts and data, wherever the files stand; every decision carries it.
        looks_at: paths of the document that answers depend on; by default the whole of it.
        schemas: of the settings of the users' controls; they were checked, and decide nothing.
    """

    sources: tuple[Source, ...]
    controls: Mapping[str, ControlText]
    data: bytes
    revision: Digest
    looks_at: Paths = ((),)
    schemas: tuple[Source, ...] = ()


def assemble(sources: Iterable[Source], settings: Settings, schemas: Iterable[Source] = ()) -> Bundle:
    """Check everything and make a bundle.

    Args:
        schemas: JSON schemas of the users' own settings, which stand under ``controls``.

    Raises:
        PolicyError: with every problem found, one per line; nothing was loaded.
        SettingsError: a setting of the user's controls is unknown, missing or wrong.
    """
    ordered = sorted(sources)
    modules: list[tuple[Source, Module]] = []
    problems: list[str] = []
    for source in ordered:
        try:
            modules.append((source, parse_module(source.path, source.text)))
        except PolicyError as error:
            problems.append(str(error))
    if problems:
        raise PolicyError("\n".join(problems))  # the rest can't be judged without every file
    values = settings.model_dump()
    schemas = tuple(schemas)
    values["controls"] = user_settings(values["controls"], schemas)
    problems.extend(Checks(modules, values).all())
    if problems:
        raise PolicyError("\n".join(dict.fromkeys(problems)))
    controls = {code: text for source, module in modules for code, text in _texts(source, module)}
    data = pack({"settings": values})
    # What decides, and not where it stands: wherever these controls are loaded, they have this revision.
    content = sorted(pack([source.guest, source.text]) for source in ordered)
    revision = digest("bundle", b"\0".join(content) + b"\0" + data)
    seen = looks_at(module for _, module in modules)
    return Bundle(tuple(ordered), MappingProxyType(dict(sorted(controls.items()))), data, revision, seen, schemas)


def _texts(source: Source, module: Module) -> Iterator[tuple[str, ControlText]]:
    code = code_of(module)
    if code is None:
        return
    metadata = _metadata(source.path, source.text)
    found = metadata.get("custom")
    custom: dict[str, Any] = found if isinstance(found, dict) else {}
    if custom.get("code", code) != code:
        raise PolicyError(f"{source.path}:{module.line}: METADATA names another code than the package, {code!r}")
    title = _text(metadata, "title") or code
    # What a workspace writes may be a stranger's text: the model is not told it in our name.
    model = "" if source.guest else _text(custom, "model")
    yield (
        code,
        ControlText(
            code=code,
            title=title,
            description=_text(metadata, "description") or title,
            for_model=model or f"The {'workspace' if source.guest else 'operator'}'s control {code} objects.",
            own=source.own,
        ),
    )


def _text(block: Mapping[str, Any], key: str) -> str:
    """A text of METADATA on one line; empty when it is something else."""
    value = block.get(key)
    text = value.isoformat() if isinstance(value, date) else value  # YAML reads 2020-12-24 as a date
    return " ".join(text.split())[:1000] if isinstance(text, str) else ""


_BLOCK: Final = re.compile(r"^# METADATA\n((?:#.*\n)+)", re.MULTILINE)


@lru_cache(maxsize=512)
def _metadata(path: str, text: str) -> dict[str, Any]:
    """The first METADATA block of a file."""
    block = _BLOCK.search(text)
    if block is None:
        return {}
    line = text[: block.start()].count("\n") + 1
    return read(
        "\n".join(line[2:] for line in block.group(1).splitlines()), "yaml", f"{path}:{line}: METADATA", PolicyError
    )
