"""A draft as lines of text: everything that would be sent, and nothing that could hide or act (case 68). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interlock.model.drafts import Draft, Kept, Status
from interlock.model.escaping import wrapped
from interlock.model.labels import Label
from interlock.model.question_view import LINE, PAGE, block, paged
from interlock.model.question_view import lines as question_lines

_SAYS: Final = {
    Status.DRAFTED: "Nothing was sent. It waits for a person.",
    Status.RELEASED: "Nothing was sent yet. It is released, and the agent's process sends it.",
    Status.TAKEN: "It is being sent, or its sending was cut off; then nobody knows whether it was sent.",
    Status.DOUBT: "Its sending was cut off: nobody knows whether it was sent. Nothing tries it again.",
}


def lines(draft: Draft, kept: Kept, since: Sequence[Label]) -> list[str]:
    """The whole draft.

    Args:
        since: labels that have entered since it was drafted.
    """
    whole = question_lines(draft.question)
    said = [_SAYS.get(kept.status, f"It is {kept.status.value}.")]
    said += [f"Its release came to nothing: {kept.why}."] if kept.why else []
    found = [f"Draft {draft.id}", "", *block("Where it stands", said)]
    # What is shown of a question, but for its own first line and for what a yes to it would mean.
    found += whole[2 : whole.index("If you say yes")]
    found += block("What has entered since it was drafted", list(since))
    until = kept.expires[:19]
    found += block(
        "If you release it",
        [f"it is decided anew, and sent once with exactly these arguments and files, before {until}Z."],
    )
    return found[:-1]


def pages(draft: Draft, kept: Kept, since: Sequence[Label], height: int = PAGE, columns: int = LINE) -> list[list[str]]:
    """The same in pages."""
    whole = [piece for line in lines(draft, kept, since) for piece in wrapped(line, columns)]
    return paged(f"Draft {draft.id}", whole, height)
