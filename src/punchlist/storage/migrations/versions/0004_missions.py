"""Missions and what belongs to them, runs of the engine, and claims on todos."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "missions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("json_config", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("last_tick", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'archived')", name="ck_missions_status"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_missions_slug", "missions", ["slug"], unique=True)
    op.create_table(
        "pillars",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("todo_conversation_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'archived')", name="ck_pillars_status"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["todo_conversation_id"], ["conversations.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_pillars_slug", "pillars", ["mission_id", "slug"], unique=True)
    op.create_table(
        "strategies",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("pillar_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "status IN ('proposed', 'active', 'paused', 'done', 'dropped')", name="ck_strategies_status"
        ),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["pillar_id"], ["pillars.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_strategies_pillar", "strategies", ["pillar_id", "position"])
    op.create_table(
        "metrics",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("pillar_id", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), server_default="", nullable=False),
        sa.Column("target", sa.Float(), nullable=False),
        sa.Column("warning", sa.Float(), nullable=True),
        sa.Column("direction", sa.Text(), nullable=False),
        sa.Column("collector", sa.Text(), nullable=False),
        sa.Column("stale_after_hours", sa.Float(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'archived')", name="ck_metrics_status"),
        sa.CheckConstraint("direction IN ('up', 'down')", name="ck_metrics_direction"),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["pillar_id"], ["pillars.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_metrics_slug", "metrics", ["mission_id", "slug"], unique=True)
    op.create_table(
        "metric_readings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("metric_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["metric_id"], ["metrics.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_metric_readings_metric", "metric_readings", ["metric_id", "position"], unique=True)
    op.create_table(
        "mission_todos",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("pillar_id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), server_default="", nullable=False),
        sa.Column("justification", sa.Text(), server_default="", nullable=False),
        sa.Column("completion_criteria", sa.Text(), server_default="", nullable=False),
        sa.Column("deadline", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("priority", sa.Text(), server_default="medium", nullable=False),
        sa.Column("assigned_agent", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=True),
        sa.Column("completed_at", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("also_affects", sa.Text(), server_default="[]", nullable=False),
        sa.Column("completion_check", sa.Text(), nullable=True),
        sa.Column("check_result", sa.Text(), nullable=True),
        sa.Column("worked_at", sa.Text(), nullable=True),
        sa.Column("override_reason", sa.Text(), nullable=True),
        sa.Column("overdue_at", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "status IN ('backlog', 'pending', 'in_progress', 'completed', 'cancelled')", name="ck_mission_todos_status"
        ),
        sa.CheckConstraint("priority IN ('critical', 'high', 'medium', 'low')", name="ck_mission_todos_priority"),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["pillar_id"], ["pillars.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_mission_todos_ended", "mission_todos", ["mission_id", "ended_at"])
    op.create_index("idx_mission_todos_pillar", "mission_todos", ["pillar_id", "ended_at"])
    op.create_table(
        "escalations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=False),
        sa.Column("todo_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.Text(), nullable=False),
        sa.Column("reminded_at", sa.Text(), nullable=True),
        sa.Column("reminders", sa.Integer(), server_default="0", nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("answered_at", sa.Text(), nullable=True),
        sa.CheckConstraint("status IN ('open', 'acknowledged', 'answered')", name="ck_escalations_status"),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["todo_id"], ["mission_todos.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_escalations_mission", "escalations", ["mission_id", "status"])
    op.create_index("idx_escalations_todo", "escalations", ["todo_id"])
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("mission_id", sa.Text(), nullable=True),
        sa.Column("pillar_id", sa.Text(), nullable=True),
        sa.Column("todo_id", sa.Text(), nullable=True),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("leg", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("executor", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("wish", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("why", sa.Text(), server_default="", nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost", sa.Float(), server_default="0", nullable=False),
        sa.Column("calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("seconds", sa.Float(), server_default="0", nullable=False),
        sa.CheckConstraint("wish IN ('pause', 'stop')", name="ck_runs_wish"),
        sa.CheckConstraint(
            "status IN ('queued', 'dispatched', 'running', 'waiting', 'paused', 'done', 'failed', 'stopped')",
            name="ck_runs_status",
        ),
        sa.ForeignKeyConstraint(["mission_id"], ["missions.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["pillar_id"], ["pillars.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["todo_id"], ["mission_todos.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_runs_mission", "runs", ["mission_id", "created_at"])
    op.create_index("idx_runs_todo", "runs", ["todo_id", "created_at"])
    op.create_table(
        "claims",
        sa.Column("todo_id", sa.Text(), nullable=False),
        sa.Column("list", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("claimed_at", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Text(), nullable=False),
        sa.CheckConstraint("list IN ('plan', 'mission')", name="ck_claims_list"),
        sa.PrimaryKeyConstraint("todo_id"),
    )
    op.create_index("idx_claims_owner", "claims", ["list", "owner_id"])
    op.execute(
        "CREATE UNIQUE INDEX idx_runs_chat ON runs (conversation_id) "
        "WHERE status IN ('dispatched', 'running', 'waiting', 'paused') AND kind <> 'collect'"
    )
    op.execute("CREATE UNIQUE INDEX idx_escalations_one ON escalations (todo_id, kind) WHERE status <> 'answered'")
    op.execute(
        "CREATE UNIQUE INDEX idx_mission_todos_request ON mission_todos (mission_id, request_id) "
        "WHERE request_id IS NOT NULL"
    )
    op.execute("CREATE INDEX idx_mission_todos_open ON mission_todos (mission_id, status) WHERE ended_at IS NULL")
    op.execute("CREATE INDEX idx_runs_open ON runs (status, created_at) WHERE ended_at IS NULL")
    op.execute("CREATE INDEX idx_turn_todos_pending ON turn_todos (turn_id, priority) WHERE status = 'pending'")
