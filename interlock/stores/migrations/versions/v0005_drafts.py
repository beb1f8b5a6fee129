"""Drafts of calls that are not sent before a person releases them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Bytes, as everywhere. ``body`` holds arguments of calls until the draft is over."""
    op.create_table(
        "interlock_drafts",
        *(sa.Column(name, sa.LargeBinary, primary_key=True) for name in ("namespace", "conversation", "draft")),
        sa.Column("at", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("interlock_draft_times", "interlock_drafts", ["namespace", "at", "draft"])
