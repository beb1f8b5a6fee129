"""Destinations: the receivers and targets that a call's arguments name.

Each kind has a normal form, and matching is on whole normal forms, never on substrings: for URLs, a prefix test
for ``https://api.corp.example`` also accepts ``https://api.corp.example@evil.test/``. What can't be parsed, or what
two parsers read differently, is of kind *unknown*; unknown is never grounded.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import ada_url

from interlock.model.canonical import pack
from interlock.model.tools import Egress, Kind, ToolSpec

MAX_DESTINATIONS: Final = 256


@dataclass(frozen=True, slots=True)
class Destination:
    """One receiver or target.

    Attributes:
        argument: name of the argument that holds it; empty for a sending call that names none.
        kind: kind that was declared, or UNKNOWN when the value could not be parsed.
        value: normal form, or for UNKNOWN what stood there.
        voice: the party that could answer from there; empty when the destination is unknown.
    """

    argument: str
    kind: Kind
    value: str
    voice: str = ""


def find(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[Destination, ...]:
    """All destinations that the manifest can see in these arguments, in order of argument names.

    A sending call without any gets one of kind UNKNOWN: it leaves for somewhere, and nobody knows where.
    """
    found: list[Destination] = []
    for argument, kind in spec.destinations:
        for value in _values(arguments.get(argument)):
            found.append(parse(argument, kind, value))
            if len(found) > MAX_DESTINATIONS:
                # Too many to show anybody; one unknown makes the whole call ungrounded.
                return (*found[:MAX_DESTINATIONS], Destination(argument, Kind.UNKNOWN, "too many"))
    if not found and spec.egress is not Egress.NONE:
        found.append(Destination("", Kind.UNKNOWN, ""))
    return tuple(found)


def unclassified(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Arguments of a sending tool that carry something and that the manifest calls neither destination nor content.

    Text and numbers count (chat and account ids are ordinary integers), truth values do not.
    """
    if spec.egress is Egress.NONE:
        return ()
    named = {argument for argument, _ in spec.destinations} | set(spec.content)
    return tuple(sorted(name for name, value in arguments.items() if name not in named and _carries(value)))


def _values(value: Any) -> Iterator[Any]:
    """Single values of a destination argument: absent, null, empty text and empty lists name nobody."""
    if value is None or value == "" or value == []:
        return
    if isinstance(value, list):
        for item in value:
            yield "" if item is None or item == [] else item
    else:
        yield value


def _carries(value: Any) -> bool:
    if isinstance(value, list):
        return any(_carries(item) for item in value)
    if isinstance(value, dict):
        return bool(value)
    return value is not None and value != "" and not isinstance(value, bool)


def parse(argument: str, kind: Kind, value: Any) -> Destination:
    """One destination in its normal form; UNKNOWN when it is not text or can't be parsed as its kind."""
    if isinstance(value, str):
        normal = normalised(kind, value)
        if normal is not None:
            return Destination(argument, kind, normal, voice_of(kind, normal))
        return Destination(argument, Kind.UNKNOWN, value)
    return Destination(argument, Kind.UNKNOWN, pack(value).decode())


@lru_cache(maxsize=4096)
def normalised(kind: Kind, text: str) -> str | None:
    """Normal form of a destination, or None when it can't be parsed as this kind."""
    if not text or len(text) > 8192 or not text.isprintable():
        return None
    match kind:
        case Kind.URL:
            return _url(text)
        case Kind.EMAIL:
            return _email(text)
        case Kind.PATH:
            return _path(text)
        case Kind.UNKNOWN:
            return None
        case _:
            # Opaque kinds have no second spelling that we could vouch for.
            return text if text == text.strip() else None


# Letters, digits, dot, hyphen, then an optional port: no user, escape, bracket, space or foreign letter.
_AUTHORITY: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.?(?::[0-9]{1,5})?")


def _url(text: str) -> str | None:
    """WHATWG's view (ada) and the standard library's must agree; odd authorities and numeric hosts are refused."""
    if "\\" in text or " " in text:
        return None
    try:
        plain = urlsplit(text)
        host = plain.hostname
        url = ada_url.URL(text)
    except ValueError:
        return None
    if not _AUTHORITY.fullmatch(plain.netloc) or host is None or url.protocol not in ("http:", "https:"):
        return None
    if url.host_type != ada_url.HostType.DEFAULT or url.hostname.rstrip(".") != host.rstrip("."):
        return None
    if url.protocol != f"{plain.scheme}:" or url.username or url.password:
        return None
    # What was decided is the normal form, what runs is the text: they may differ in host case and default port only.
    # Guards against `/EVIL/../ME` standing for a typed `/ME`: tests/regressions/test_normal_forms.py.
    if (url.pathname, url.search, url.hash) != (
        plain.path or "/",
        _after("?", plain.query),
        _after("#", plain.fragment),
    ):
        return None
    if url.hostname.endswith("."):
        url.hostname = url.hostname.rstrip(".")
    href: str = url.href
    return href


def _after(mark: str, text: str) -> str:
    return mark + text if text else ""


def _email(text: str) -> str | None:
    # Loaded late: it takes a sixth of the whole package's import, and many manifests name no mail address.
    from email_validator import EmailNotValidError, validate_email

    if not text.isascii():
        return None  # `bob@good。org` is `bob@good.org` to some systems, and another value to us
    try:
        # Names of private networks (corp.local) are addresses too, but the library refuses them at the end of one.
        parsed = validate_email(f"{text}.example", check_deliverability=False, allow_smtputf8=False)
    except EmailNotValidError:
        return None
    # Receiving systems may fold the local part's case; we never do: a different spelling is another value.
    domain = (parsed.ascii_domain or "").lower().removesuffix(".example")
    return f"{parsed.local_part}@{domain}" if domain and parsed.local_part else None


def _path(text: str) -> str | None:
    # `..` is not resolved by text: after a link it leads elsewhere than it reads.
    if "\\" in text or ".." in text.split("/"):
        return None
    normal = posixpath.normpath(text)
    return normal[1:] if normal.startswith("//") else normal


def voice_of(kind: Kind, normal: str) -> str:
    """The party behind a destination: a URL's host and a mail address's domain are one party; others are themselves."""
    if kind is Kind.URL:
        return urlsplit(normal).hostname or ""
    if kind is Kind.EMAIL:
        return normal.rpartition("@")[2]
    return f"{kind.value}:{normal}"
