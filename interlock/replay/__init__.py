"""Replaying recorded conversations: what manifest and controls would have said about every call. Nothing is executed.

A recording tells what *happened*, and the replay keeps to it. A call that the controls refuse, and whose result is in
the record, was made all the same: its labels join, as they do in shadow mode, and the line is marked. Otherwise one
refusal at the beginning would make the rest of the conversation look clean.

What a recording can't tell is decided one way, and said in the header of every report: text in the user's role counts
as typed (or, on request, as nothing), every result counts as external, an image is private, and a document that was
attached is private and untrusted.

Cost: every event is looked at once, and a decision costs the same after 10 calls and after 10,000 (T18).
"""

from interlock.replay.lines import Brought, Line, Totals, changed
from interlock.replay.player import Assumptions, Noticed, Side, replay, side
from interlock.replay.transcripts import SHAPES, Transcript, TranscriptError, read_transcript, transcript

__all__ = [
    "SHAPES",
    "Assumptions",
    "Brought",
    "Line",
    "Noticed",
    "Side",
    "Totals",
    "Transcript",
    "TranscriptError",
    "changed",
    "read_transcript",
    "replay",
    "side",
    "transcript",
]
