"""Reading TOML and YAML that a person wrote, strictly: a key that stands twice is an error that names both places."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final, Literal, TypeAlias

from interlock.errors import Misconfigured

Syntax: TypeAlias = Literal["toml", "yaml"]
MAX_BYTES: Final = 4 << 20
MAX_NESTING: Final = 64


def read(text: str, syntax: Syntax, where: str, error: type[Misconfigured]) -> dict[str, Any]:
    """Parse a file whose top level is a mapping.

    Args:
        where: what errors call it, usually a path.
        error: class of the errors raised.
    """
    if len(text) > MAX_BYTES:
        raise error(f"{where}: larger than {MAX_BYTES} bytes")
    try:
        return _toml(text, where, error) if syntax == "toml" else _yaml(text, where, error)
    except RecursionError:
        raise error(f"{where}: nested too deeply") from None


_HEADER: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")


def _toml(text: str, where: str, error: type[Misconfigured]) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as problem:  # TOMLDecodeError, and integers with too many digits
        twice = _headers_written_twice(text) or _key_written_twice(text, str(problem))
        if twice:
            name, first, second = twice
            raise error(
                f"{where}: {name} is declared twice, on line {first} and on line {second}; keep one of them"
            ) from None
        raise error(f"{where}: not TOML: {problem}") from None


def _headers_written_twice(text: str) -> tuple[str, int, int] | None:
    """The standard library names one place of a duplicate; people need both. Looks at headers only."""
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        if header:
            name = re.sub(r"\s*\.\s*", ".", header.group(1)).replace('"', "").replace("'", "")
            if name in seen:
                return f"[{name}]", seen[name], number
            seen[name] = number
    return None


def _key_written_twice(text: str, problem: str) -> tuple[str, int, int] | None:
    """The two places of a key that stands twice, when the standard library names the line of the second."""
    place = re.search(r"at line (\d+)", problem)
    lines = text.splitlines()
    if place is None or "overwrite" not in problem or not 0 < int(place[1]) <= len(lines):
        return None
    second = int(place[1])
    key = _key(lines[second - 1])
    for number, line in enumerate(lines[: second - 1], 1):
        header = _HEADER.fullmatch(line)
        named = header.group(1).rpartition(".")[2].strip(" '\"") if header else _key(line)
        if key and named == key:
            return key, number, second
    return None


def _key(line: str) -> str:
    return line.partition("=")[0].strip().strip("'\"") if "=" in line else ""


def _nesting(text: str) -> int:
    """How deep brackets nest, those in strings counted too."""
    depth = deepest = 0
    for char in re.findall(r"[\[\]{}]", text):
        depth += 1 if char in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _yaml(text: str, where: str, error: type[Misconfigured]) -> dict[str, Any]:
    # Loaded late: most manifests are TOML, and the YAML reader costs 30 ms to import.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    if _nesting(text) > MAX_NESTING:
        raise error(f"{where}: nested too deeply")  # the reader's time grows with the square of the depth
    # YAML 1.2, where `no` is a word; and a reader that refuses repeated keys naming both places.
    try:
        if any(isinstance(event, AliasEvent) for event in YAML(typ="safe", pure=True).parse(text)):
            raise error(f"{where}: aliases are not read; write the value out")
        document = YAML(typ="safe", pure=True).load(text)
    except YAMLError as problem:
        raise error(f"{where}: not YAML: {' '.join(str(problem).split())}") from None
    except ValueError as problem:  # dates and numbers that look like ones but are not
        raise error(f"{where}: not YAML: {problem}") from None
    if not isinstance(document, dict):
        raise error(f"{where}: the top level must be a mapping")
    return document
