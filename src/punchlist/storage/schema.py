"""The tables, once, for both databases.

Times and JSON are text on purpose: they read the same everywhere and need no conversion on the
way in or out. Rows of lists carry a checksum of their content, checked whenever they are read.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text

REVISION: Final = "0003"
"""The newest migration: what this program reads and writes. A test ties it to the files."""

APPLICATION_ID: Final = 0x50_4C_49_53
"""'PLIS', in the header of our SQLite files: we do not write into somebody else's database."""

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
    # Found without looking at all that was ever asked or said.
    "CREATE INDEX idx_todo_conditions_open ON todo_conditions (conversation_id) WHERE status = 'open'",
    "CREATE INDEX idx_queued_messages_queued ON queued_messages (conversation_id, position) WHERE status = 'queued'",
    # What a server's tool looked like when it last ran; our own have no fingerprint.
    "CREATE INDEX idx_tool_calls_tool ON tool_calls (tool, created_at) WHERE fingerprint IS NOT NULL",
    # Found without looking at all that ever ended.
    "CREATE INDEX idx_tool_calls_open ON tool_calls (conversation_id) WHERE ended_at IS NULL",
)
