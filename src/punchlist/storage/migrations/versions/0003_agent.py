"""What todos wait for, messages that wait for their agent, and who works on a turn; a smaller index of tools."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_index("idx_tool_calls_tool")
    op.execute("CREATE INDEX idx_tool_calls_tool ON tool_calls (tool, created_at) WHERE fingerprint IS NOT NULL")
    op.add_column("turns", sa.Column("owner", sa.Text(), nullable=True))
    op.create_table(
        "todo_conditions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("todo_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("resolved_by", sa.Text(), nullable=True),
        sa.Column("resolved_at", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("kind IN ('person', 'time', 'event', 'todo', 'resource')", name="ck_todo_conditions_kind"),
        sa.CheckConstraint("status IN ('open', 'resolved')", name="ck_todo_conditions_status"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"]),
        sa.ForeignKeyConstraint(["todo_id"], ["turn_todos.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_todo_conditions_turn", "todo_conditions", ["turn_id", "todo_id"])
    op.execute("CREATE INDEX idx_todo_conditions_open ON todo_conditions (conversation_id) WHERE status = 'open'")
    op.create_table(
        "queued_messages",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("said_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.CheckConstraint("status IN ('queued', 'delivered', 'withdrawn')", name="ck_queued_messages_status"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_queued_messages_conversation", "queued_messages", ["conversation_id", "position"], unique=True)
    op.execute(
        "CREATE INDEX idx_queued_messages_queued ON queued_messages (conversation_id, position) WHERE status = 'queued'"
    )
