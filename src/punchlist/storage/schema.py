"""The tables, once, for both databases.

Times and JSON are text on purpose: they read the same everywhere and need no conversion on the
way in or out. Rows of lists carry a checksum of their content, checked whenever they are read.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text

metadata = MetaData()

conversations = Table(
    "conversations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False, server_default=""),
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("created_at", Text, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("parent_turn_id", Text, ForeignKey("turns.id")),
    Column("agent_id", Text, nullable=False),
    Column("end_reason", Text),
    Column("started_at", Text, nullable=False),
    Column("ended_at", Text),
    # The process that works on it; none while nobody does.
    Column("owner", Text),
    Index("idx_turns_conversation", "conversation_id", "started_at"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", Text, ForeignKey("turns.id")),
    # Counted in the conversation: an order that does not depend on clocks.
    Column("position", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default="text"),
    Column("content", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    CheckConstraint("role IN ('user', 'assistant', 'tool', 'system')", name="ck_messages_role"),
    Index("idx_messages_conversation", "conversation_id", "position", unique=True),
    Index("idx_messages_turn", "turn_id"),
)

traces = Table(
    "traces",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", Text, ForeignKey("turns.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("input", Text, nullable=False, server_default=""),
    Column("output", Text, nullable=False, server_default=""),
    Column("error", Text),
    Column("started_at", Text, nullable=False),
    Column("ended_at", Text, nullable=False),
    CheckConstraint("kind IN ('model', 'tool')", name="ck_traces_kind"),
    Index("idx_traces_turn", "turn_id", "started_at"),
)

checklists = Table(
    "checklists",
    metadata,
    Column("conversation_id", Text, ForeignKey("conversations.id"), primary_key=True),
    Column("items", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    # The revision that an undo brings back; 0 stands for the empty list before the first one.
    Column("undo_to", Integer, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

turn_todos = Table(
    "turn_todos",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", Text, ForeignKey("turns.id"), nullable=False),
    Column("title", Text, nullable=False),
    Column("context", Text, nullable=False, server_default=""),
    Column("completion_criteria", Text, nullable=False, server_default=""),
    Column("agent_type", Text),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("outcome", Text),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("completed_at", Text),
    Column("checksum", BigInteger, nullable=False),
    CheckConstraint("status IN ('pending', 'in_progress', 'completed', 'cancelled')", name="ck_turn_todos_status"),
    Index("idx_turn_todos_turn", "turn_id", "status"),
    Index("idx_turn_todos_conversation", "conversation_id", "turn_id"),
)

todo_conditions = Table(
    "todo_conditions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", Text, ForeignKey("turns.id"), nullable=False),
    Column("todo_id", Text, ForeignKey("turn_todos.id"), nullable=False),
    Column("kind", Text, nullable=False),
    # What a person is asked, when it is time, the event's name, the other todo's id, what is claimed.
    Column("subject", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="open"),
    Column("answer", Text),
    Column("resolved_by", Text),
    Column("resolved_at", Text),
    Column("created_at", Text, nullable=False),
    CheckConstraint("kind IN ('person', 'time', 'event', 'todo', 'resource')", name="ck_todo_conditions_kind"),
    CheckConstraint("status IN ('open', 'resolved')", name="ck_todo_conditions_status"),
    Index("idx_todo_conditions_turn", "turn_id", "todo_id"),
)

queued_messages = Table(
    "queued_messages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    # Counted in the conversation: the order in which they are delivered.
    Column("position", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("said_by", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("changed_at", Text),
    # The turn that it began.
    Column("turn_id", Text, ForeignKey("turns.id")),
    CheckConstraint("status IN ('queued', 'delivered', 'withdrawn')", name="ck_queued_messages_status"),
    Index("idx_queued_messages_conversation", "conversation_id", "position", unique=True),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("turn_id", Text, ForeignKey("turns.id")),
    # Counted in the conversation: an order that depends neither on clocks nor on ids.
    Column("position", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    # Without secrets. What was hidden is in `exact` as long as the call may still run.
    Column("arguments", Text, nullable=False),
    Column("exact", Text),
    Column("status", Text, nullable=False),
    Column("effect", Text),
    Column("fingerprint", Text),
    # What the request said besides: dependencies, priority, keys, time limit; as JSON.
    Column("terms", Text, nullable=False, server_default="{}"),
    Column("workspace", Text, nullable=False),
    # The process that has the call in hand.
    Column("owner", Text, nullable=False),
    Column("result", Text),
    Column("output_file", Text),
    Column("error_code", Text),
    # Why it failed or was cancelled, for the model.
    Column("explanation", Text),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("ended_at", Text),
    Column("checksum", BigInteger, nullable=False),
    CheckConstraint(
        "status IN ('validating', 'scheduled', 'awaiting_approval', 'executing', 'success', 'error', 'cancelled')",
        name="ck_tool_calls_status",
    ),
    Index("idx_tool_calls_conversation", "conversation_id", "position", unique=True),
    Index("idx_tool_calls_turn", "turn_id", "position"),
)

approvals = Table(
    "approvals",
    metadata,
    Column("call_id", Text, ForeignKey("tool_calls.id"), primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("why", Text, nullable=False),
    # What "always" would mean: beginnings of commands as JSON, and the server.
    Column("prefixes", Text, nullable=False, server_default="[]"),
    Column("server", Text),
    Column("asked_at", Text, nullable=False),
    Column("expires_at", Text),
    Column("on_expiry", Text, nullable=False),
    Column("outcome", Text),
    Column("answered_by", Text),
    Column("answered_at", Text),
    # Other arguments as JSON, for `modify`; gone when the call has taken them.
    Column("arguments", Text),
    Column("reason", Text, nullable=False, server_default=""),
    CheckConstraint(
        "status IN ('pending', 'escalated', 'approved', 'denied', 'expired', 'withdrawn')", name="ck_approvals_status"
    ),
    Index("idx_approvals_status", "status", "asked_at"),
    Index("idx_approvals_conversation", "conversation_id", "asked_at"),
)

tool_rules = Table(
    "tool_rules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("rule", Text, nullable=False),
    # Made with a key of the user's: a database that somebody sent brings no permissions along.
    Column("seal", Text, nullable=False, server_default=""),
    Column("said_by", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Index("idx_tool_rules_conversation", "conversation_id", "id"),
)

missions = Table(
    "missions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    # What the file says, read and completed with what it leaves open.
    Column("json_config", Text, nullable=False),
    # The file as it was applied: whether its commands are trusted depends on every character of it.
    Column("source", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    # The mission chat.
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    # The newest moment of its cadence that a cycle was begun for.
    Column("last_tick", Text),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),
    CheckConstraint("status IN ('active', 'archived')", name="ck_missions_status"),
    Index("idx_missions_slug", "slug", unique=True),
)

pillars = Table(
    "pillars",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("position", Integer, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    # Where it is planned, and where its todos are worked on.
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("todo_conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("created_at", Text, nullable=False),
    CheckConstraint("status IN ('active', 'archived')", name="ck_pillars_status"),
    Index("idx_pillars_slug", "mission_id", "slug", unique=True),
)

strategies = Table(
    "strategies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("pillar_id", Text, ForeignKey("pillars.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),
    CheckConstraint("status IN ('proposed', 'active', 'paused', 'done', 'dropped')", name="ck_strategies_status"),
    Index("idx_strategies_pillar", "pillar_id", "position"),
)

metrics = Table(
    "metrics",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("pillar_id", Text, ForeignKey("pillars.id", ondelete="CASCADE"), nullable=False),
    Column("slug", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("unit", Text, nullable=False, server_default=""),
    Column("target", Float, nullable=False),
    Column("warning", Float),
    Column("direction", Text, nullable=False),
    # How it is collected, as JSON.
    Column("collector", Text, nullable=False),
    Column("stale_after_hours", Float, nullable=False),
    Column("position", Integer, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    # What went wrong when it was last collected; none when nothing did.
    Column("last_error", Text),
    Column("last_error_at", Text),
    Column("created_at", Text, nullable=False),
    CheckConstraint("direction IN ('up', 'down')", name="ck_metrics_direction"),
    CheckConstraint("status IN ('active', 'archived')", name="ck_metrics_status"),
    Index("idx_metrics_slug", "mission_id", "slug", unique=True),
)

metric_readings = Table(
    "metric_readings",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("metric_id", Text, ForeignKey("metrics.id", ondelete="CASCADE"), nullable=False),
    # Counted for the metric: an order that does not depend on clocks.
    Column("position", Integer, nullable=False),
    Column("value", Float, nullable=False),
    Column("at", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("note", Text, nullable=False, server_default=""),
    Index("idx_metric_readings_metric", "metric_id", "position", unique=True),
)

mission_todos = Table(
    "mission_todos",
    metadata,
    Column("id", Text, primary_key=True),
    Column("pillar_id", Text, ForeignKey("pillars.id", ondelete="CASCADE"), nullable=False),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("justification", Text, nullable=False, server_default=""),
    Column("completion_criteria", Text, nullable=False, server_default=""),
    Column("deadline", Text),
    Column("status", Text, nullable=False, server_default="pending"),
    Column("priority", Text, nullable=False, server_default="medium"),
    Column("assigned_agent", Text),
    Column("outcome", Text),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("completed_at", Text),
    # When it was completed or cancelled: what ended long ago is left out of views.
    Column("ended_at", Text),
    # Slugs of pillars that it also matters to, as JSON.
    Column("also_affects", Text, nullable=False, server_default="[]"),
    # What must hold before it can be completed, and what came of looking, as JSON.
    Column("completion_check", Text),
    Column("check_result", Text),
    # When somebody last worked on it: a check must have passed after that.
    Column("worked_at", Text),
    # Why the Lead completed it though its check had not passed.
    Column("override_reason", Text),
    # When it was found to be overdue.
    Column("overdue_at", Text),
    # What the caller named its request: the same request makes one todo, however often it comes.
    Column("request_id", Text),
    Column("checksum", BigInteger, nullable=False),
    CheckConstraint(
        "status IN ('backlog', 'pending', 'in_progress', 'completed', 'cancelled')", name="ck_mission_todos_status"
    ),
    CheckConstraint("priority IN ('critical', 'high', 'medium', 'low')", name="ck_mission_todos_priority"),
    Index("idx_mission_todos_ended", "mission_id", "ended_at"),
    Index("idx_mission_todos_pillar", "pillar_id", "ended_at"),
)

escalations = Table(
    "escalations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE"), nullable=False),
    Column("todo_id", Text, ForeignKey("mission_todos.id", ondelete="CASCADE"), nullable=False),
    # What it is about: a deadline that has passed, work that does not come to an end.
    Column("kind", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("asked_at", Text, nullable=False),
    Column("reminded_at", Text),
    Column("reminders", Integer, nullable=False, server_default="0"),
    Column("answer", Text),
    Column("answered_by", Text),
    Column("answered_at", Text),
    CheckConstraint("status IN ('open', 'acknowledged', 'answered')", name="ck_escalations_status"),
    Index("idx_escalations_mission", "mission_id", "status"),
    Index("idx_escalations_todo", "todo_id"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("mission_id", Text, ForeignKey("missions.id", ondelete="CASCADE")),
    Column("pillar_id", Text, ForeignKey("pillars.id", ondelete="CASCADE")),
    Column("todo_id", Text, ForeignKey("mission_todos.id", ondelete="CASCADE")),
    # Where it is worked on: one run at a time.
    Column("conversation_id", Text, ForeignKey("conversations.id"), nullable=False),
    Column("agent", Text, nullable=False),
    # What it is asked to do, as JSON.
    Column("request", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    # Counts how often it was tried anew after it had failed.
    Column("leg", Integer, nullable=False, server_default="0"),
    # Counts how often a worker began with it, which is more when workers died.
    Column("attempts", Integer, nullable=False, server_default="0"),
    # The worker that has it in hand, and the turn it is at.
    Column("executor", Text),
    Column("turn_id", Text, ForeignKey("turns.id")),
    # What a person wants of it, pause or stop, and what they say to it; its worker sees to both.
    Column("wish", Text),
    Column("message", Text),
    # Why it waits, was paused or stopped, or how it failed.
    Column("why", Text, nullable=False, server_default=""),
    Column("result", Text),
    Column("created_at", Text, nullable=False),
    Column("changed_at", Text, nullable=False),
    Column("started_at", Text),
    Column("ended_at", Text),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("cost", Float, nullable=False, server_default="0"),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("seconds", Float, nullable=False, server_default="0"),
    CheckConstraint(
        "status IN ('queued', 'dispatched', 'running', 'waiting', 'paused', 'done', 'failed', 'stopped')",
        name="ck_runs_status",
    ),
    CheckConstraint("wish IN ('pause', 'stop')", name="ck_runs_wish"),
    Index("idx_runs_mission", "mission_id", "created_at"),
    Index("idx_runs_todo", "todo_id", "created_at"),
)

claims = Table(
    "claims",
    metadata,
    Column("todo_id", Text, primary_key=True),
    # Whose todo it is: `plan` with its turn, or `mission` with its mission.
    Column("list", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("holder", Text),
    # Grows with every claim of this todo: whoever comes with an older one is too late.
    Column("fence", BigInteger, nullable=False),
    Column("claimed_at", Text, nullable=False),
    Column("lease_until", Text, nullable=False),
    CheckConstraint("list IN ('plan', 'mission')", name="ck_claims_list"),
    Index("idx_claims_owner", "list", "owner_id"),
)

events = Table(
    "events",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("stream", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Text, nullable=False),
    Column("conversation_id", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("from_status", Text),
    Column("to_status", Text),
    Column("reason", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("hash", Text, nullable=False),
    # Also what stops two writers from continuing one stream in two ways.
    Index("idx_events_stream", "stream", "version", unique=True),
    Index("idx_events_conversation", "conversation_id", "seq"),
)

# What the database itself sees to, whoever asks at the same moment. As plain SQL, which both
# understand: a condition given to `Index` would load both dialects, 150 ms in every command.
GUARDS: Final = (
    # A conversation has one open turn of its own.
    "CREATE UNIQUE INDEX idx_turns_open ON turns (conversation_id) WHERE ended_at IS NULL AND parent_turn_id IS NULL",
    # One item of a plan is in progress.
    "CREATE UNIQUE INDEX idx_turn_todos_one_in_progress ON turn_todos (turn_id) WHERE status = 'in_progress'",
    # The next of a plan's todos, found without looking at all of them.
    "CREATE INDEX idx_turn_todos_pending ON turn_todos (turn_id, priority) WHERE status = 'pending'",
    # Found without looking at all that was ever asked or said.
    "CREATE INDEX idx_todo_conditions_open ON todo_conditions (conversation_id) WHERE status = 'open'",
    "CREATE INDEX idx_queued_messages_queued ON queued_messages (conversation_id, position) WHERE status = 'queued'",
    # What a server's tool looked like when it last ran; our own have no fingerprint.
    "CREATE INDEX idx_tool_calls_tool ON tool_calls (tool, created_at) WHERE fingerprint IS NOT NULL",
    # One run at a time works in a chat (collecting says nothing there), and one question about a todo is open.
    "CREATE UNIQUE INDEX idx_runs_chat ON runs (conversation_id) "
    "WHERE status IN ('dispatched', 'running', 'waiting', 'paused') AND kind <> 'collect'",
    "CREATE UNIQUE INDEX idx_escalations_one ON escalations (todo_id, kind) WHERE status <> 'answered'",
    # The same request makes one todo.
    "CREATE UNIQUE INDEX idx_mission_todos_request ON mission_todos (mission_id, request_id) "
    "WHERE request_id IS NOT NULL",
    # Found without looking at all that ever ended.
    "CREATE INDEX idx_mission_todos_open ON mission_todos (mission_id, status) WHERE ended_at IS NULL",
    "CREATE INDEX idx_runs_open ON runs (status, created_at) WHERE ended_at IS NULL",
    "CREATE INDEX idx_tool_calls_open ON tool_calls (conversation_id) WHERE ended_at IS NULL",
)
