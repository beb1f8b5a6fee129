"""Names that others choose: of namespaces and of conversations.

Kept as exact UTF-8 bytes and compared as such, so neither case nor Unicode normal form nor a collation can make two of
them one. What could be cut off or hidden on the way is refused: NUL, line breaks, invisible characters.
"""

from __future__ import annotations

from typing import Final

from interlock.errors import Refused

MAX_NAMESPACE: Final = 128
MAX_NAME: Final = 512


def namespace_name(text: str) -> str:
    """A namespace: printable text of 1 to 128 characters.

    Raises:
        Refused: it is none.
    """
    if type(text) is not str or not text or len(text) > MAX_NAMESPACE or not text.isprintable():
        raise Refused(f"a namespace is printable text of 1 to {MAX_NAMESPACE} characters")
    return text


def conversation_name(text: str) -> str:
    """The id of a conversation: printable text of 1 to 512 characters.

    Raises:
        Refused: it is none.
    """
    if type(text) is not str or not text or len(text) > MAX_NAME or not text.isprintable():
        raise Refused(f"the id of a conversation is printable text of 1 to {MAX_NAME} characters")
    return text
