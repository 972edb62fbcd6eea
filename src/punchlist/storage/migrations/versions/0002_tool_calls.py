"""Tool calls, the approvals they wait for, and what was said "always" to."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("exact", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("terms", sa.Text(), server_default="{}", nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("output_file", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("explanation", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "status IN ('validating', 'scheduled', 'awaiting_approval', 'executing', 'success', 'error', 'cancelled')",
            name="ck_tool_calls_status",
        ),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_tool_calls_conversation", "tool_calls", ["conversation_id", "position"], unique=True)
    op.create_index("idx_tool_calls_turn", "tool_calls", ["turn_id", "position"])
    op.create_index("idx_tool_calls_tool", "tool_calls", ["tool", "created_at"])
    op.execute("CREATE INDEX idx_tool_calls_open ON tool_calls (conversation_id) WHERE ended_at IS NULL")
    op.create_table(
        "approvals",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("prefixes", sa.Text(), server_default="[]", nullable=False),
        sa.Column("server", sa.Text(), nullable=True),
        sa.Column("asked_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("on_expiry", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("answered_at", sa.Text(), nullable=True),
        sa.Column("arguments", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'escalated', 'approved', 'denied', 'expired', 'withdrawn')",
            name="ck_approvals_status",
        ),
        sa.ForeignKeyConstraint(["call_id"], ["tool_calls.id"]),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("call_id"),
    )
    op.create_index("idx_approvals_status", "approvals", ["status", "asked_at"])
    op.create_index("idx_approvals_conversation", "approvals", ["conversation_id", "asked_at"])
    op.create_table(
        "tool_rules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("seal", sa.Text(), server_default="", nullable=False),
        sa.Column("said_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_tool_rules_conversation", "tool_rules", ["conversation_id", "id"])
