"""Origins: who vouches for a value that a call names.

From strong to weak. ``user``: the whole value stands in text that was journalled as typed. ``operator``: it stands in
the settings' address book or allow-lists. ``trusted``: a result that only trusted parties write held it, or this
conversation made the record. ``metadata``: a field that the provider fills held it. ``designated``: the id of a record
that was found by a query which the person typed, perhaps among others. ``mixed``: a trusted result held
it, after a stranger's text or this conversation's own arguments could have put it there. ``untrusted``: a stranger's
text held its words. ``unseen``: nobody did; the model made it, put it together, decoded or translated it.

What was typed is remembered as digests of normal forms, so the journal holds no prompt text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from interlock.errors import SettingsError
from interlock.model.destinations import Destination, is_below_public_suffix, normalised, voice_of
from interlock.model.digests import Digest, digest
from interlock.model.fields import index_mark
from interlock.model.marks import MAX_PHRASE, checksums, mark, needs_all, person_marks, vouching_marks, words_of
from interlock.model.provenance import EMPTY, Claim, Provenance, Vouch, Voucher, claim_mark
from interlock.model.tools import Kind


class Origin(StrEnum):
    """Where a value in the arguments came from."""

    USER = "user"
    OPERATOR = "operator"
    TRUSTED = "trusted"
    METADATA = "metadata"
    DESIGNATED = "designated"
    MIXED = "mixed"
    UNTRUSTED = "untrusted"
    UNSEEN = "unseen"


GROUNDING: Final = frozenset({Origin.USER, Origin.OPERATOR, Origin.TRUSTED})
MAX_TYPED: Final = 1000
MAX_COMPOSED: Final = 32

_WORDS: Final = re.compile(r"[^\s<>]+")
_OPENING: Final = "([{<\"'`«“‘"
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_LONGEST: Final = 8192  # nothing longer has a normal form
_CLOSING: Final = ".,;:!?)]}>\"'`»”’"
_PATHLIKE: Final = re.compile(r"(~|\.{1,2})?/.+|[\w.-]+(/[\w.-]+)+|[\w-][\w.-]*\.[A-Za-z0-9]{1,8}")


@lru_cache(maxsize=4096)
def value_digest(kind: Kind, normal: str) -> Digest:
    """Digest of a normal form; the kind is part of it, so a typed path never vouches for an address."""
    return digest("value", f"{kind.value}\0{normal}".encode("utf-8", "surrogatepass"))


def typed_values(text: str) -> tuple[Digest, ...]:
    """Digests of the whole URLs, mail addresses and paths in text that a person typed, at most 1,000.

    A value must stand as a word of its own; punctuation around it is not part of it.
    """
    found: dict[Digest, None] = {}
    for word in _WORDS.findall(text):
        if len(word) > _LONGEST:
            continue
        bare = _bare(word)
        for each in (bare, *_run_together(bare)):
            for kind in _kinds(each):
                normal = normalised(kind, each)
                if normal is not None:
                    found[value_digest(kind, normal)] = None
        if len(found) >= MAX_TYPED:
            break  # what is not remembered is `unseen`: the strict side
    return tuple(found)[:MAX_TYPED]


_NEXT_SENTENCE: Final = re.compile(r"(.+)\.([A-Z][a-z]+)")


def _run_together(word: str) -> Iterable[str]:
    """What was typed before a full stop without a space: `www.corp.example.They` is no host, and what precedes is."""
    found = _NEXT_SENTENCE.fullmatch(word)
    if found is not None and "/" not in word:
        host = found[1].rpartition("@")[2]
        if is_below_public_suffix(host, known=True) and not is_below_public_suffix(f"{host}.{found[2]}", known=True):
            yield found[1]


@lru_cache(maxsize=8)
def said_by_person(text: str) -> tuple[Digest, ...]:
    """Everything in typed text that vouches: whole values first, then phrases, names, numbers and days."""
    return tuple(dict.fromkeys((*typed_values(text), *_other_values(text), *person_marks(text))))


_GROUPED: Final = re.compile(r"(?<!\w)[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,4})?(?!\w)")
_DIALLED: Final = re.compile(r"(?<![\w.])(?:\+|00)?\d[\d ()/-]{5,20}\d(?!\w)")


def _other_values(text: str) -> Iterable[Digest]:
    """Whole accounts, telephone numbers and domains; and a page without a scheme under the safer one too."""
    for kind, pattern in ((Kind.ACCOUNT, _GROUPED), (Kind.PHONE, _DIALLED)):
        for found in pattern.findall(text)[:MAX_TYPED]:
            normal = normalised(kind, found)
            if normal is not None:
                yield value_digest(kind, normal)
    for word in _WORDS.findall(text)[:MAX_TYPED]:
        bare = _bare(word) if len(word) <= _LONGEST else ""
        if "." in bare and "@" not in bare:
            normal = normalised(Kind.DOMAIN, bare)
            if normal is not None:
                yield value_digest(Kind.DOMAIN, normal)
            page = normalised(Kind.URL, bare) if "://" not in bare else None
            if page is not None:
                yield value_digest(Kind.URL, "https" + page.removeprefix("http"))


def parties(source: str) -> tuple[frozenset[str], bool]:
    """Who speaks from a source that a host names: the parties of its URLs and addresses, and whether one of them could
    not be made out."""
    found: set[str] = set()
    unheard = False
    for word in _WORDS.findall(source):
        bare = _bare(word) if len(word) <= _LONGEST else word
        if "://" in bare or "@" in bare:
            kind = Kind.URL if "://" in bare else Kind.EMAIL
            normal = normalised(kind, bare)
            unheard = unheard or normal is None
            found |= set() if normal is None else {voice_of(kind, normal)}
        elif "%40" in bare or bare.casefold().startswith(("www.", "//", "http:", "https:")):
            unheard = True
    return frozenset(found), unheard


def _bare(word: str) -> str:
    """The word without the punctuation around it; a bracket that the word itself opens belongs to it."""
    bare = word.lstrip(_OPENING)
    left = {bracket: bare.count(bracket) for bracket in "()[]{}"}
    end = len(bare)
    while end and bare[end - 1] in _CLOSING:
        closing = bare[end - 1]
        opening = _PAIRS.get(closing)
        if opening:
            if left[opening] >= left[closing]:
                break
            left[closing] -= 1
        end -= 1
    return bare[:end].removeprefix("mailto:")


def bare_words(text: str) -> Iterable[str]:
    """The words of a text, without the punctuation around them."""
    return (_bare(word) for word in _WORDS.findall(text) if len(word) <= _LONGEST)


def _kinds(word: str) -> Iterable[Kind]:
    if "://" in word or word[:4].lower() == "www.":
        yield Kind.URL
    elif "@" in word:
        yield Kind.EMAIL
    elif _PATHLIKE.fullmatch(word):
        yield Kind.PATH


def address_book(entries: Mapping[str, Iterable[str]]) -> frozenset[Digest]:
    """The operator's destinations, normalised like those of calls.

    Raises:
        SettingsError: an entry can't be parsed as its kind; it would silently match nothing.
    """
    found = set()
    for name, values in entries.items():
        kind = Kind(name)
        for value in values:
            normal = normalised(kind, value)
            if normal is None:
                raise SettingsError(f"address_book.{name}: {value!r} can't be read as {name}; correct or remove it")
            found.add(value_digest(kind, normal))
    return frozenset(found)


def named_values(entries: Mapping[str, Iterable[str]]) -> tuple[tuple[Kind, str], ...]:
    """The operator's destinations as values, by kind, in normal form; those that have none are left out."""
    found = [(Kind(name), normalised(Kind(name), value)) for name, values in entries.items() for value in values]
    return tuple((kind, normal) for kind, normal in found if normal is not None)


@dataclass(frozen=True, slots=True)
class AllowLists:
    """What else the operator vouches for. All are normal forms, matched by labels or segments, never by prefixes.

    Attributes:
        domains: mail addresses and domains at or below them.
        hosts: URLs at or below them.
        roots: absolute paths below them.
    """

    domains: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()

    def hold(self, kind: Kind, normal: str) -> bool:
        """Does one of the lists hold this value?"""
        match kind:
            case Kind.EMAIL:
                return _below(normal.rpartition("@")[2], self.domains)
            case Kind.DOMAIN:
                return _below(normal, self.domains)
            case Kind.URL:
                return _below(urlsplit(normal).hostname or "", self.hosts)
            case Kind.PATH:
                return any(is_under(normal, root) for root in self.roots)
            case _:
                return False


NO_LISTS: Final = AllowLists()


def allow_lists(domains: Iterable[str], hosts: Iterable[str], roots: Iterable[str]) -> AllowLists:
    """The operator's allow-lists, normalised.

    Raises:
        SettingsError: an entry can't be read, or would hold a public suffix; it would match nothing or everybody.
    """
    for root in roots:
        if not root.startswith("/") or normalised(Kind.PATH, root) is None or root.strip("/") == "":
            raise SettingsError(f"roots: {root!r} is no absolute path below the root of the file system")
    return AllowLists(_names("own_domains", domains), _names("hosts", hosts), tuple(sorted(roots)))


def _names(setting: str, values: Iterable[str]) -> tuple[str, ...]:
    found = set()
    for value in values:
        normal = normalised(Kind.DOMAIN, value)
        if normal is None:
            raise SettingsError(f"{setting}: {value!r} is no domain below a public suffix; correct or remove it")
        found.add(normal)
    return tuple(sorted(found))


def _below(name: str, allowed: Iterable[str]) -> bool:
    return any(name == one or name.endswith(f".{one}") for one in allowed)


def is_under(path: str, root: str) -> bool:
    """Is an absolute path the root or below it, by segments? Case counts: no system's folding is assumed."""
    ours, theirs = path.split("/"), root.rstrip("/").split("/")
    return path.startswith("/") and ".." not in ours and ours[: len(theirs)] == theirs


def origin_of(
    destination: Destination,
    typed: frozenset[Digest],
    operator: frozenset[Digest],
    lists: AllowLists = NO_LISTS,
    index: Provenance = EMPTY,
) -> Origin:
    """The strongest origin that vouches for a value. Unknown is vouched for by nobody."""
    kind, normal, noun = destination.kind, destination.value, destination.noun
    if kind is Kind.UNKNOWN:
        return Origin.UNSEEN
    value = value_digest(kind, normal)
    if value in typed or _is_typed(kind, noun, normal, typed):
        return Origin.USER
    if value in operator or lists.hold(kind, normal):
        return Origin.OPERATOR
    if kind is Kind.WORDS and index.trusted and _is_composed(normal, typed, index):
        return Origin.TRUSTED
    return _of_results(kind, noun, normal, typed, index)


# What stands in text as one whole value; every other kind is made of words and numbers.
_WHOLE: Final = frozenset({Kind.URL, Kind.EMAIL, Kind.PATH, Kind.DOMAIN, Kind.PHONE})


def _is_typed(kind: Kind, noun: str, normal: str, typed: frozenset[Digest]) -> bool:
    if kind in _WHOLE or not typed:
        return False
    marks = list(vouching_marks(kind, noun, normal))
    return bool(marks) and (all if needs_all(kind) else any)(one in typed for one in marks)


def _is_composed(normal: str, typed: frozenset[Digest], index: Provenance) -> bool:
    """Is every word typed, or part of a whole value that a trusted result held? `Dinner at Linde`, asked for as
    `Dinner at {restaurant}`."""
    words = words_of(normal)[:MAX_COMPOSED]
    left = {place for place, word in enumerate(words) if mark("word", word) not in typed}
    for length in range(min(MAX_PHRASE, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            window = range(start, start + length)
            if not left.isdisjoint(window):
                found = index.vouch(mark("text", " ".join(words[start : start + length])))
                if found is not None and found.voucher is Voucher.TRUSTED:
                    left.difference_update(window)
    return bool(words) and not left and len(words_of(normal)) <= MAX_COMPOSED


def _of_results(kind: Kind, noun: str, normal: str, typed: frozenset[Digest], index: Provenance) -> Origin:
    value = Digest(index_mark(kind, noun, normal))
    found = index.record(value) if kind is Kind.ID else index.vouch(value)
    if found is not None:
        match found.voucher:
            case Voucher.TRUSTED | Voucher.MADE:
                return Origin.TRUSTED
            case Voucher.METADATA:
                return Origin.METADATA
            case Voucher.MIXED:
                return Origin.MIXED
            case Voucher.RECORD if _is_named(found, value, noun, typed, index):
                return Origin.USER
            case Voucher.RECORD if _is_designated(found, typed):
                return Origin.DESIGNATED
    words = checksums(normal)
    return Origin.UNTRUSTED if words and index.has_heard(words) and index.heard else Origin.UNSEEN


def _is_designated(found: Vouch, typed: frozenset[Digest]) -> bool:
    """Did a query find this record that stands in what the person typed? Others may have been found as well."""
    return any(name.startswith("?") and Digest(name[1:]) in typed for name in found.names)


def _is_named(found: Vouch, own: Digest, noun: str, typed: frozenset[Digest], index: Provenance) -> bool:
    """Did the person type a name that this record bears, and no other record of its kind?"""
    return any(name in typed and index.holder(claim_mark(noun, name)) == Claim(own) for name in found.names)
