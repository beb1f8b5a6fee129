"""Marks for quotations: drawn for one request, and not in the text that they enclose."""

from __future__ import annotations

import secrets


def mark_for(text: str) -> str:
    """32 digits that nobody can foresee (:func:`interlock.model.quoting.enclosed`)."""
    mark = secrets.token_hex(16)
    while mark in text.casefold():
        mark = secrets.token_hex(16)
    return mark
