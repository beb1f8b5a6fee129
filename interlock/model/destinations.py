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
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import ada_url

from interlock.model.canonical import pack
from interlock.model.places import at, loose
from interlock.model.tools import Egress, Kind, Named, ToolSpec

MAX_DESTINATIONS: Final = 256


@dataclass(frozen=True, slots=True)
class Destination:
    """One value that a call names: a receiver, a target, an object, a party or a link.

    Attributes:
        argument: path of the argument that holds it; empty for a sending call that names none.
        kind: kind that was declared, or UNKNOWN when the value could not be parsed.
        value: normal form, or for UNKNOWN what stood there.
        voice: the party that could answer from there; empty when the destination is unknown.
        noun: what an id is the id of, or empty: ids of different nouns are never the same.
    """

    argument: str
    kind: Kind
    value: str
    voice: str = ""
    noun: str = ""


def find(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[Destination, ...]:
    """All destinations that the manifest can see in these arguments, in order of argument names.

    A sending call without any gets one of kind UNKNOWN: it leaves for somewhere, and nobody knows where.
    """
    found = named(spec, spec.destinations, arguments)
    if not found and spec.egress is not Egress.NONE:
        return (Destination("", Kind.UNKNOWN, ""),)
    return found


def named(spec: ToolSpec, places: Named, arguments: Mapping[str, Any]) -> tuple[Destination, ...]:
    """All values at these places of the arguments, in order of their paths; at most 256, then one unknown more."""
    found: list[Destination] = []
    for path, kind in places:
        noun = spec.noun_of.get(path, "")
        for whole in at(arguments, path):
            for value in _values(whole):
                found.extend(parse_all(path, kind, value, noun))
                if len(found) > MAX_DESTINATIONS:
                    # Too many to show anybody; one unknown makes the whole call ungrounded.
                    return (*found[:MAX_DESTINATIONS], Destination(path, Kind.UNKNOWN, "too many"))
    return tuple(found)


def unclassified(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Places in the arguments of a sending tool that carry something and that the manifest does not classify.

    Text and numbers count (chat and account ids are ordinary integers), truth values do not.
    """
    if spec.egress is Egress.NONE:
        return ()
    return tuple(sorted(loose(arguments, spec.roles)))


def _values(value: Any) -> Iterator[Any]:
    """Single values of a destination argument: absent, null, empty text and empty lists name nobody."""
    if value is None or value == "" or value == []:
        return
    if isinstance(value, list):
        for item in value:
            yield "" if item is None or item == [] else item
    else:
        yield value


# Keys that hold the address in an object that stands for it, and keys that only say how to show it.
_ADDRESS: Final = frozenset("email emailaddress email_address mail address url uri href link id path".split())
_SHOWN: Final = frozenset("name displayname display_name label title".split())
_NUMBERED: Final = frozenset({Kind.ID, Kind.ACCOUNT, Kind.AMOUNT})


def parse_all(argument: str, kind: Kind, value: Any, noun: str = "") -> tuple[Destination, ...]:
    """Every destination in one value: a field of mail addresses may hold several, an object may stand for one."""
    if isinstance(value, dict):
        held = [key for key in value if key.casefold() in _ADDRESS]
        shown = [key for key in value if key.casefold() in _SHOWN]
        if len(held) == 1 and len(held) + len(shown) == len(value) and isinstance(value[held[0]], str):
            return parse_all(argument, kind, value[held[0]], noun)
    if kind is Kind.EMAIL and isinstance(value, str):
        several = mail_addresses(value)
        if several:
            return tuple(Destination(argument, kind, one, voice_of(kind, one), noun) for one in several)
    return (parse(argument, kind, value, noun),)


def parse(argument: str, kind: Kind, value: Any, noun: str = "") -> Destination:
    """One destination in its normal form; UNKNOWN when it is not text or can't be parsed as its kind."""
    if type(value) in (int, float) and kind in _NUMBERED:
        value = str(value)
    if isinstance(value, str):
        normal = normalised(kind, value)
        if normal is not None:
            return Destination(argument, kind, normal, voice_of(kind, normal), noun)
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
        case Kind.DOMAIN:
            return _domain(text)
        case Kind.ACCOUNT:
            return _account(text)
        case Kind.PHONE:
            return _phone(text)
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
    if _BARE_HOST.fullmatch(text.partition("/")[0].partition("?")[0]) and "://" not in text:
        text = f"http://{text}"  # what a browser makes of `www.corp.example/a`
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


# `www.corp.example`: at least two dots or a `www`, so that a file name is not taken for a host.
_BARE_HOST: Final = re.compile(r"www\.[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.IGNORECASE)


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


# What may stand between addresses in a field: separators, and a display name of plain words or in plain quotes.
_DISPLAY: Final = re.compile(r"\s*(?:[\w.'\u2019-]+(?: [\w.'\u2019-]+)*|\"[\w.,'\u2019 -]*\")?\s*")
MAX_FIELD: Final = 8192


@lru_cache(maxsize=4096)
def mail_addresses(text: str) -> tuple[str, ...] | None:
    """All addresses in a field of mail addresses, in order, or None when two systems could read it differently.

    Read are single addresses, ``Name <address>``, ``"Name" <address>``, and these with commas between them. Groups,
    comments, routes, escapes, line breaks and an address in a display name are not.
    """
    if "@" not in text or text != text.strip() or len(text) > MAX_FIELD or not text.isprintable() or "\\" in text:
        return None
    found: list[str] = []
    for part in _commas(text):
        bare = part.strip()
        shown, opening, rest = bare.partition("<")
        if opening:
            inner, closing, after = rest.partition(">")
            if not closing or after or not _DISPLAY.fullmatch(shown) or "@" in shown:
                return None
            bare = inner
        normal = normalised(Kind.EMAIL, bare)
        if normal is None:
            return None
        found.append(normal)
    # Whoever looks for anything with an `@` must find the same; and so must the standard library's reader.
    if text.count("@") != len(found) or not _library_agrees(text, found):
        return None
    return tuple(found)


def _commas(text: str) -> Iterator[str]:
    """Parts between commas that stand in no quotes."""
    part, quoted = "", False
    for char in text:
        quoted ^= char == '"'
        if char == "," and not quoted:
            yield part
            part = ""
        else:
            part += char
    yield part


def _library_agrees(text: str, found: list[str]) -> bool:
    from email.utils import getaddresses  # loaded late: most fields hold one bare address

    if len(found) == 1 and text.strip() == text and "<" not in text:
        return True
    read = [address for _, address in getaddresses([text])]
    return [normalised(Kind.EMAIL, one) for one in read] == found


def _domain(text: str) -> str | None:
    """A name below a public suffix, in ASCII and lower case; two readers of foreign letters must agree."""
    name = text.removesuffix(".")
    if not name or name != name.strip() or not _HOST.fullmatch(name):
        if name.isascii() or any(char in name for char in "/@: "):
            return None
        import idna  # loaded late, like the public suffixes

        try:
            ours = idna.encode(name, uts46=True, transitional=False).decode()
            theirs = ada_url.idna_to_ascii(name.encode()).decode()
        except (UnicodeError, ValueError):
            return None
        if ours != theirs or not _HOST.fullmatch(ours):
            return None
        name = ours
    name = name.lower()
    labels = name.split(".")
    if labels[-1].isdigit() or labels[-1].startswith("0x") or not is_below_public_suffix(name):
        return None  # a number in any spelling is an address, and nobody owns `co.uk`
    return name


_HOST: Final = re.compile(r"(?=.{1,253}$)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9-]{2,63}")


@cache
def _suffixes(known: bool) -> Any:
    from publicsuffixlist import PublicSuffixList  # loaded late: the bundled list is large

    return PublicSuffixList(accept_unknown=not known)


@lru_cache(maxsize=4096)
def is_below_public_suffix(name: str, *, known: bool = False) -> bool:
    """Is there somebody who could own this name? The list is bundled; nothing is fetched.

    Args:
        known: only below suffixes that are in the list; otherwise names of private networks count too.
    """
    return _suffixes(known).privatesuffix(name.lower()) is not None


# Countries whose account numbers are IBANs, by the registry; there a wrong checksum is a wrong number.
_IBAN_COUNTRIES: Final = frozenset(
    "AD AE AL AT AZ BA BE BG BH BR BY CH CR CY CZ DE DK DO EE ES FI FO FR GB GE GI GL GR GT HR HU IE IL IQ IS IT JO KW"
    " KZ LB LC LI LT LU LV MC MD ME MK MR MT MU NL NO PK PL PS PT QA RO RS SA SC SE SI SK SM ST SV TL TN TR UA VA VG"
    " XK".split()
)
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")


def _account(text: str) -> str | None:
    """Account numbers that look like IBANs without spaces and in capitals; a wrong checksum is no account."""
    compact = text.replace(" ", "").replace("-", "").upper()
    if not _IBAN.fullmatch(compact):
        return text if text == text.strip() else None
    if compact[:2] in _IBAN_COUNTRIES:
        moved = compact[4:] + compact[:4]
        if int("".join(str(int(char, 36)) for char in moved)) % 97 != 1:
            return None
    return compact


_PHONE: Final = re.compile(r"(?:\+|00)?[0-9][0-9 ()./-]{1,28}[0-9]")


def _phone(text: str) -> str | None:
    """Digits, with a plus for an international number; anything else that is no number stays as it is."""
    if not _PHONE.fullmatch(text):
        return text if text == text.strip() else None
    digits = re.sub(r"[^0-9]", "", text)
    if text.startswith("+"):
        return f"+{digits}"
    return f"+{digits[2:]}" if text.startswith("00") else digits


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
