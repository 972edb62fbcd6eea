-- The baseline: every table as of the first release. Databases of development versions at schema 0004 have exactly
-- these tables, so they open without a change; 0001 to 0003 are refused.
--
-- One text for SQLite and PostgreSQL, except that BIGSERIAL becomes INTEGER on SQLite. A statement ends with a
-- semicolon at the end of a line.
--
-- Times and JSON are stored as text: they read the same everywhere and need no conversion.
-- Rows of lists carry a checksum of their content, which is verified on every read.

CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT DEFAULT '' NOT NULL,
    metadata TEXT DEFAULT '{}' NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE turns (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    parent_turn_id TEXT REFERENCES turns (id),
    agent_id TEXT NOT NULL,
    end_reason TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    -- The process that works on the turn; NULL when none does.
    owner TEXT
);
CREATE INDEX idx_turns_conversation ON turns (conversation_id, started_at);

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT REFERENCES turns (id),
    -- Numbered within the conversation: an order that does not depend on clocks.
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    kind TEXT DEFAULT 'text' NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT ck_messages_role CHECK (role IN ('user', 'assistant', 'tool', 'system'))
);
CREATE UNIQUE INDEX idx_messages_conversation ON messages (conversation_id, position);
CREATE INDEX idx_messages_turn ON messages (turn_id);

CREATE TABLE traces (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT NOT NULL REFERENCES turns (id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    input TEXT DEFAULT '' NOT NULL,
    output TEXT DEFAULT '' NOT NULL,
    error TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT NOT NULL,
    CONSTRAINT ck_traces_kind CHECK (kind IN ('model', 'tool'))
);
CREATE INDEX idx_traces_turn ON traces (turn_id, started_at);

CREATE TABLE checklists (
    conversation_id TEXT NOT NULL PRIMARY KEY REFERENCES conversations (id),
    items TEXT NOT NULL,
    revision INTEGER NOT NULL,
    -- The revision that an undo restores; 0 is the empty list before the first revision.
    undo_to INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    checksum BIGINT NOT NULL
);

CREATE TABLE turn_todos (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT NOT NULL REFERENCES turns (id),
    title TEXT NOT NULL,
    context TEXT DEFAULT '' NOT NULL,
    completion_criteria TEXT DEFAULT '' NOT NULL,
    agent_type TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    priority INTEGER DEFAULT '0' NOT NULL,
    outcome TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    checksum BIGINT NOT NULL,
    CONSTRAINT ck_turn_todos_status CHECK (status IN ('pending', 'in_progress', 'completed', 'cancelled'))
);
CREATE INDEX idx_turn_todos_turn ON turn_todos (turn_id, status);
CREATE INDEX idx_turn_todos_conversation ON turn_todos (conversation_id, turn_id);

CREATE TABLE todo_conditions (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT NOT NULL REFERENCES turns (id),
    todo_id TEXT NOT NULL REFERENCES turn_todos (id),
    kind TEXT NOT NULL,
    -- By kind: the question, the time, the event's name, the other todo's id, the resource.
    subject TEXT NOT NULL,
    status TEXT DEFAULT 'open' NOT NULL,
    answer TEXT,
    resolved_by TEXT,
    resolved_at TEXT,
    created_at TEXT NOT NULL,
    CONSTRAINT ck_todo_conditions_kind CHECK (kind IN ('person', 'time', 'event', 'todo', 'resource')),
    CONSTRAINT ck_todo_conditions_status CHECK (status IN ('open', 'resolved'))
);
CREATE INDEX idx_todo_conditions_turn ON todo_conditions (turn_id, todo_id);

CREATE TABLE queued_messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    -- Numbered within the conversation: the order of delivery.
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    said_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    changed_at TEXT,
    -- The turn that the message started.
    turn_id TEXT REFERENCES turns (id),
    CONSTRAINT ck_queued_messages_status CHECK (status IN ('queued', 'delivered', 'withdrawn'))
);
CREATE UNIQUE INDEX idx_queued_messages_conversation ON queued_messages (conversation_id, position);

CREATE TABLE tool_calls (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT REFERENCES turns (id),
    -- Numbered within the conversation: an order that depends neither on clocks nor on ids.
    position INTEGER NOT NULL,
    tool TEXT NOT NULL,
    -- With secrets redacted. `exact` has the original until the call has ended.
    arguments TEXT NOT NULL,
    exact TEXT,
    status TEXT NOT NULL,
    effect TEXT,
    fingerprint TEXT,
    -- JSON: dependencies, priority, resource keys and time limit of the request.
    terms TEXT DEFAULT '{}' NOT NULL,
    workspace TEXT NOT NULL,
    -- The process that runs the call.
    owner TEXT NOT NULL,
    result TEXT,
    output_file TEXT,
    error_code TEXT,
    -- For the model: why the call failed or was cancelled.
    explanation TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    checksum BIGINT NOT NULL,
    CONSTRAINT ck_tool_calls_status CHECK (status IN ('validating', 'scheduled', 'awaiting_approval', 'executing', 'success', 'error', 'cancelled'))
);
CREATE UNIQUE INDEX idx_tool_calls_conversation ON tool_calls (conversation_id, position);
CREATE INDEX idx_tool_calls_turn ON tool_calls (turn_id, position);

CREATE TABLE approvals (
    call_id TEXT NOT NULL PRIMARY KEY REFERENCES tool_calls (id),
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    status TEXT NOT NULL,
    question TEXT NOT NULL,
    why TEXT NOT NULL,
    -- What the answer "always" would allow: command prefixes as JSON, and the MCP server.
    prefixes TEXT DEFAULT '[]' NOT NULL,
    server TEXT,
    asked_at TEXT NOT NULL,
    expires_at TEXT,
    on_expiry TEXT NOT NULL,
    outcome TEXT,
    answered_by TEXT,
    answered_at TEXT,
    -- JSON: the arguments of a `modify` answer; removed when the call has taken them.
    arguments TEXT,
    reason TEXT DEFAULT '' NOT NULL,
    CONSTRAINT ck_approvals_status CHECK (status IN ('pending', 'escalated', 'approved', 'denied', 'expired', 'withdrawn'))
);
CREATE INDEX idx_approvals_status ON approvals (status, asked_at);
CREATE INDEX idx_approvals_conversation ON approvals (conversation_id, asked_at);

CREATE TABLE tool_rules (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    rule TEXT NOT NULL,
    -- A MAC with the user's key, so that a database from another user carries no permissions.
    seal TEXT DEFAULT '' NOT NULL,
    said_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX idx_tool_rules_conversation ON tool_rules (conversation_id, id);

CREATE TABLE missions (
    id TEXT NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    -- The parsed mission.json with defaults filled in.
    json_config TEXT NOT NULL,
    -- mission.json exactly as applied: trust in its commands is bound to its hash.
    source TEXT NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    -- The mission chat.
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    -- The last time of the cadence for which a cycle was started.
    last_tick TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    checksum BIGINT NOT NULL,
    CONSTRAINT ck_missions_status CHECK (status IN ('active', 'archived'))
);
CREATE UNIQUE INDEX idx_missions_slug ON missions (slug);

CREATE TABLE pillars (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    position INTEGER NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    -- The conversation for planning, and the one for work on todos.
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    todo_conversation_id TEXT NOT NULL REFERENCES conversations (id),
    created_at TEXT NOT NULL,
    CONSTRAINT ck_pillars_status CHECK (status IN ('active', 'archived'))
);
CREATE UNIQUE INDEX idx_pillars_slug ON pillars (mission_id, slug);

CREATE TABLE strategies (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    pillar_id TEXT NOT NULL REFERENCES pillars (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    CONSTRAINT ck_strategies_status CHECK (status IN ('proposed', 'active', 'paused', 'done', 'dropped'))
);
CREATE INDEX idx_strategies_pillar ON strategies (pillar_id, position);

CREATE TABLE metrics (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    pillar_id TEXT NOT NULL REFERENCES pillars (id) ON DELETE CASCADE,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    unit TEXT DEFAULT '' NOT NULL,
    target FLOAT NOT NULL,
    warning FLOAT,
    direction TEXT NOT NULL,
    -- JSON: the collector's configuration.
    collector TEXT NOT NULL,
    stale_after_hours FLOAT NOT NULL,
    position INTEGER NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    -- The error of the last collection; NULL if it succeeded.
    last_error TEXT,
    last_error_at TEXT,
    created_at TEXT NOT NULL,
    CONSTRAINT ck_metrics_direction CHECK (direction IN ('up', 'down')),
    CONSTRAINT ck_metrics_status CHECK (status IN ('active', 'archived'))
);
CREATE UNIQUE INDEX idx_metrics_slug ON metrics (mission_id, slug);

CREATE TABLE metric_readings (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    metric_id TEXT NOT NULL REFERENCES metrics (id) ON DELETE CASCADE,
    -- Numbered within the metric: an order that does not depend on clocks.
    position INTEGER NOT NULL,
    value FLOAT NOT NULL,
    at TEXT NOT NULL,
    source TEXT NOT NULL,
    note TEXT DEFAULT '' NOT NULL
);
CREATE UNIQUE INDEX idx_metric_readings_metric ON metric_readings (metric_id, position);

CREATE TABLE mission_todos (
    id TEXT NOT NULL PRIMARY KEY,
    pillar_id TEXT NOT NULL REFERENCES pillars (id) ON DELETE CASCADE,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    justification TEXT DEFAULT '' NOT NULL,
    completion_criteria TEXT DEFAULT '' NOT NULL,
    deadline TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    priority TEXT DEFAULT 'medium' NOT NULL,
    assigned_agent TEXT,
    outcome TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    -- When it was completed or cancelled. Views omit todos that ended long ago.
    ended_at TEXT,
    -- JSON: slugs of other pillars that the todo affects.
    also_affects TEXT DEFAULT '[]' NOT NULL,
    -- JSON: the check that must pass before completion, and its last result.
    completion_check TEXT,
    check_result TEXT,
    -- When an agent last worked on it: only a check that passed later counts.
    worked_at TEXT,
    -- Why the lead completed it although its check had not passed.
    override_reason TEXT,
    -- When the sweep found it overdue.
    overdue_at TEXT,
    -- The caller's idempotency key: repeating a request creates no second todo.
    request_id TEXT,
    checksum BIGINT NOT NULL,
    CONSTRAINT ck_mission_todos_status CHECK (status IN ('backlog', 'pending', 'in_progress', 'completed', 'cancelled')),
    CONSTRAINT ck_mission_todos_priority CHECK (priority IN ('critical', 'high', 'medium', 'low'))
);
CREATE INDEX idx_mission_todos_ended ON mission_todos (mission_id, ended_at);
CREATE INDEX idx_mission_todos_pillar ON mission_todos (pillar_id, ended_at);

CREATE TABLE escalations (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    todo_id TEXT NOT NULL REFERENCES mission_todos (id) ON DELETE CASCADE,
    -- `overdue` (the deadline has passed) or `review` (work does not finish).
    kind TEXT NOT NULL,
    question TEXT NOT NULL,
    status TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    reminded_at TEXT,
    reminders INTEGER DEFAULT '0' NOT NULL,
    answer TEXT,
    answered_by TEXT,
    answered_at TEXT,
    CONSTRAINT ck_escalations_status CHECK (status IN ('open', 'acknowledged', 'answered'))
);
CREATE INDEX idx_escalations_mission ON escalations (mission_id, status);
CREATE INDEX idx_escalations_todo ON escalations (todo_id);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    mission_id TEXT REFERENCES missions (id) ON DELETE CASCADE,
    pillar_id TEXT REFERENCES pillars (id) ON DELETE CASCADE,
    todo_id TEXT REFERENCES mission_todos (id) ON DELETE CASCADE,
    -- The conversation of the work; one run at a time works in it.
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    agent TEXT NOT NULL,
    -- JSON: the task.
    request TEXT NOT NULL,
    created_by TEXT NOT NULL,
    -- The number of retries after a failure.
    leg INTEGER DEFAULT '0' NOT NULL,
    -- The number of starts by a worker: a worker that dies adds one.
    attempts INTEGER DEFAULT '0' NOT NULL,
    -- The worker that owns the run, and the turn it works on.
    executor TEXT,
    turn_id TEXT REFERENCES turns (id),
    -- A control request (pause or stop) and a message for the agent; the worker handles both.
    wish TEXT,
    message TEXT,
    -- Why the run waits, was paused or stopped, or failed.
    why TEXT DEFAULT '' NOT NULL,
    result TEXT,
    created_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    input_tokens BIGINT DEFAULT '0' NOT NULL,
    output_tokens BIGINT DEFAULT '0' NOT NULL,
    cost FLOAT DEFAULT '0' NOT NULL,
    calls INTEGER DEFAULT '0' NOT NULL,
    seconds FLOAT DEFAULT '0' NOT NULL,
    CONSTRAINT ck_runs_status CHECK (status IN ('queued', 'dispatched', 'running', 'waiting', 'paused', 'done', 'failed', 'stopped')),
    CONSTRAINT ck_runs_wish CHECK (wish IN ('pause', 'stop'))
);
CREATE INDEX idx_runs_mission ON runs (mission_id, created_at);
CREATE INDEX idx_runs_todo ON runs (todo_id, created_at);

CREATE TABLE claims (
    todo_id TEXT NOT NULL PRIMARY KEY,
    -- The list of the todo: `plan` with a turn id, or `mission` with a mission id.
    list TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    holder TEXT,
    -- The fencing token: increases with every claim, and an older one is refused.
    fence BIGINT NOT NULL,
    claimed_at TEXT NOT NULL,
    lease_until TEXT NOT NULL,
    CONSTRAINT ck_claims_list CHECK (list IN ('plan', 'mission'))
);
CREATE INDEX idx_claims_owner ON claims (list, owner_id);

CREATE TABLE events (
    seq BIGSERIAL NOT NULL PRIMARY KEY,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    at TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    from_status TEXT,
    to_status TEXT,
    reason TEXT NOT NULL,
    data TEXT NOT NULL,
    hash TEXT NOT NULL
);
-- Also prevents two writers from appending the same version to one stream.
CREATE UNIQUE INDEX idx_events_stream ON events (stream, version);
CREATE INDEX idx_events_conversation ON events (conversation_id, seq);

-- Invariants that the database enforces, and partial indexes that skip finished rows.

-- A conversation has at most one open top-level turn.
CREATE UNIQUE INDEX idx_turns_open ON turns (conversation_id) WHERE ended_at IS NULL AND parent_turn_id IS NULL;
-- At most one todo of a plan is in progress.
CREATE UNIQUE INDEX idx_turn_todos_one_in_progress ON turn_todos (turn_id) WHERE status = 'in_progress';
CREATE INDEX idx_turn_todos_pending ON turn_todos (turn_id, priority) WHERE status = 'pending';
CREATE INDEX idx_todo_conditions_open ON todo_conditions (conversation_id) WHERE status = 'open';
CREATE INDEX idx_queued_messages_queued ON queued_messages (conversation_id, position) WHERE status = 'queued';
-- Only tools of MCP servers have a fingerprint.
CREATE INDEX idx_tool_calls_tool ON tool_calls (tool, created_at) WHERE fingerprint IS NOT NULL;
-- One run at a time works in a conversation (a collection writes nothing there).
CREATE UNIQUE INDEX idx_runs_chat ON runs (conversation_id)
WHERE status IN ('dispatched', 'running', 'waiting', 'paused') AND kind <> 'collect';
-- A todo has at most one open escalation of each kind.
CREATE UNIQUE INDEX idx_escalations_one ON escalations (todo_id, kind) WHERE status <> 'answered';
CREATE UNIQUE INDEX idx_mission_todos_request ON mission_todos (mission_id, request_id) WHERE request_id IS NOT NULL;
CREATE INDEX idx_mission_todos_open ON mission_todos (mission_id, status) WHERE ended_at IS NULL;
CREATE INDEX idx_runs_open ON runs (status, created_at) WHERE ended_at IS NULL;
CREATE INDEX idx_tool_calls_open ON tool_calls (conversation_id) WHERE ended_at IS NULL;
