"""Open questions, for people who answer from another process."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Bytes, as everywhere. ``body`` holds arguments of calls until the question is closed."""
    op.create_table(
        "interlock_questions",
        *(sa.Column(name, sa.LargeBinary, primary_key=True) for name in ("namespace", "conversation", "question")),
        sa.Column("at", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("interlock_question_times", "interlock_questions", ["namespace", "at", "question"])
