"""The assistant's own text as a sink: what a program that shows it would load, or a person would click (cases 1, 4, 5).

No parser of Markdown or HTML is believed here, since every client has its own. Whatever any of them could take for an
address is one: spellings are undone (entities, escapes, widths, invisible characters), and addresses inside addresses
count too, because a host that is vouched for may pass on whatever it is asked for. What looks like an exit and can't be
read is an exit that nobody vouches for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from typing import Final
from unicodedata import category, normalize
from urllib.parse import unquote

from interlock.model.destinations import normalised
from interlock.model.links import in_text
from interlock.model.tools import Clause, Condition, Egress, Kind, ToolId, ToolSpec

MAX_EXITS: Final = 256
MAX_ROUNDS: Final = 3
REMOVED: Final = "(link removed)"
WITHHELD: Final = "(This answer is not shown: what could be sent by showing it could not be taken out of it.)"


@dataclass(frozen=True, slots=True)
class Exits:
    """Where a text leads once it is shown, each sorted.

    Attributes:
        addresses: that are loaded or clicked, in their normal form.
        mails: addresses of mail.
        unread: what looks like an exit and can't be read as one of these.
    """

    addresses: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.addresses or self.mails or self.unread)


# A Markdown destination, and a definition that references point to. What stands before them makes no difference.
_INLINE: Final = re.compile(r"\]\(\s*(<[^<>\n]*>|[^\s()<>]*)")
_DEFINED: Final = re.compile(r"^[ >\t*+-]{0,12}\[[^\]\n]{1,999}\]:\s*(<[^<>\n]*>|\S+)", re.MULTILINE)
_SCHEME: Final = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,31}:(?=[^\s:])\S*", re.IGNORECASE)
_RELATIVE: Final = re.compile(r"(?<![\w:/\\])[/\\]{2}[^\s/\\\"'<>()]\S*")
# A name with a path, whether or not anybody knows its ending.
_BARE: Final = re.compile(r"(?<![\w@./\\-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?::[0-9]{1,5})?/\S*", re.IGNORECASE)
# Any tag, closed or not: programs that show half of a text close it themselves.
_TAG: Final = re.compile(r"<[a-zA-Z!/?][^<>]{0,20000}")
_VALUE: Final = re.compile(r"[a-zA-Z_:@.-]{1,64}\s*=\s*(\"[^\"]*\"?|'[^']*'?|[^\s\"'<>]+)")
_STYLE: Final = re.compile(r"(?:url|image-set|@import)\s*\(?\s*[\"']?([^\s\"')]+)", re.IGNORECASE)
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
# Nobody sees them, and no script needs them: tags, bidirectional controls, blanks without width, selectors.
_HIDDEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_REACHING: Final = frozenset(("http", "https", "ftp", "ftps", "ws", "wss"))


def exits(text: str) -> Exits:
    """Where a text leads once it is shown."""
    addresses: set[str] = set()
    mails: set[str] = set()
    unread: set[str] = set()
    if _HIDDEN.search(text):
        unread.add("characters that nobody sees")
    for form in _spellings(text):
        for found in _candidates(form):
            _sort(found, addresses, mails, unread)
        for one in in_text(form):
            if one.kind is Kind.URL:
                _sort(one.value, addresses, mails, unread)
            elif one.kind is Kind.DOMAIN:
                _sort(f"http://{one.value}", addresses, mails, unread)
            elif one.kind is Kind.EMAIL:
                mails.add(one.value)
            elif one.kind is Kind.UNKNOWN:
                unread.add(one.value[:200])
    if len(addresses) + len(mails) + len(unread) > MAX_EXITS:
        unread.add("more exits than can be looked at")
    return Exits(*(tuple(sorted(group)[:MAX_EXITS]) for group in (addresses, mails, unread)))


def _spellings(text: str) -> Iterator[str]:
    """The text as programs may read it."""
    seen: set[str] = set()
    plain = text
    for _ in range(MAX_ROUNDS):
        visible = "".join(
            one for one in normalize("NFKC", plain) if category(one) not in ("Cf", "Cc") or one in "\n\t "
        )
        for form in (plain, visible.replace("\u3002", "."), _ESCAPE.sub(r"\1", visible)):
            if form not in seen:
                seen.add(form)
                yield form
        further = unescape(plain)
        if further == plain:
            return
        plain = further


def _candidates(text: str) -> Iterator[str]:
    for pattern in (_INLINE, _DEFINED):
        for match in pattern.finditer(text):
            inside = match.group(1).strip("<>")
            if inside and not inside.startswith("#"):
                yield inside
    for match in _SCHEME.finditer(text):
        word = match.group()
        if word.partition(":")[0].lower() in _REACHING or "//" in word or "\\\\" in word or _acts(word):
            yield word
    for match in _RELATIVE.finditer(text):
        yield match.group()
    for match in _BARE.finditer(text):
        yield f"http://{match.group()}"
    for tag in _TAG.finditer(text):
        for value in _VALUE.finditer(tag.group()):
            inside = value.group(1).strip("\"'")
            if any(one in inside for one in ":/\\.?") and inside.strip():
                yield inside
    for match in _STYLE.finditer(text):
        yield match.group(1)


def _acts(word: str) -> bool:
    scheme = word.partition(":")[0].lower()
    return scheme in ("mailto", "javascript", "vbscript", "data", "blob", "file", "tel", "sms", "intent", "vscode")


def _sort(found: str, addresses: set[str], mails: set[str], unread: set[str], depth: int = 0) -> None:
    word = found.strip().rstrip(".,;:!?*_~\"'`)]}>")
    if not word:
        return
    scheme = word.partition(":")[0].lower()
    if scheme == "mailto":
        whom = normalised(Kind.EMAIL, unquote(word[7:].partition("?")[0]))
        mails.add(whom) if whom is not None else unread.add(word[:200])
        return
    if word.startswith(("//", "\\\\")):
        word = f"https:{word}"
    elif word.lower().startswith("www."):
        word = f"http://{word}"
    normal = normalised(Kind.URL, word)
    if normal is None:
        unread.add(word[:200])
        return
    addresses.add(normal)
    # An address inside an address: whoever is vouched for may load what he is asked for.
    rest = normal.partition("://")[2].partition("/")[2]
    for _ in range(MAX_ROUNDS):
        rest, before = unquote(rest), rest
        for one in in_text(rest):
            if one.kind in (Kind.URL, Kind.DOMAIN) and depth < MAX_ROUNDS:
                inner = one.value if one.kind is Kind.URL else f"http://{one.value}"
                if inner != normal:
                    _sort(inner, addresses, mails, unread, depth + 1)
        for match in _RELATIVE.finditer(rest):
            if depth < MAX_ROUNDS:
                _sort(match.group(), addresses, mails, unread, depth + 1)
        if rest == before:
            break


_IMAGE: Final = re.compile(r"!\[([^\]\n]*)\](?:\([^)\n]*\)?|\[[^\]\n]*\])?")
_LINK: Final = re.compile(r"\[([^\]\n]*)\](?:\([^)\n]*\)?|\[[^\]\n]*\])")
_WORD: Final = re.compile(r"\S+")


def inert(text: str) -> str:
    """The text with everything taken out that leads anywhere. ``exits`` of what is given is empty."""
    plain = _HIDDEN.sub("", text)
    plain = _DEFINED.sub("", plain)
    plain = _IMAGE.sub(lambda found: f"{found.group(1)} (image removed)", plain)
    plain = _LINK.sub(lambda found: f"{found.group(1)} {REMOVED}", plain)
    plain = _TAG.sub(lambda found: found.group() if _is_harmless(found.group()) else "", plain)
    for _ in range(MAX_ROUNDS):
        if not exits(plain):
            return plain
        plain = _WORD.sub(lambda found: REMOVED if exits(found.group()) else found.group(), plain)
    return plain if not exits(plain) else WITHHELD


def _is_harmless(tag: str) -> bool:
    return "=" not in tag and not exits(f"{tag}>")


# --- the same as a call -----------------------------------------------------------------------------------------------

RENDER: Final = ToolId("interlock", "render")


def spec() -> ToolSpec:
    """What showing a text can do: it sends to every address in it, and nothing when there is none."""
    sends = ToolSpec(
        RENDER,
        returns=(),
        egress=Egress.CHOSEN,
        destinations=(("addresses", Kind.URL), ("mails", Kind.EMAIL), ("unread", Kind.URL)),
        content=("text",),
        description="The assistant's text, as it is shown to the person.",
    )
    absent = tuple(Condition(name, "absent") for name in ("addresses", "mails", "unread"))
    return replace(sends, when=(Clause(absent, replace(sends, egress=Egress.NONE)),))


def arguments(text: str) -> dict[str, object]:
    """The arguments of the call."""
    found = exits(text)
    return {
        "addresses": list(found.addresses),
        "mails": list(found.mails),
        "unread": list(found.unread),
        "text": text,
    }
