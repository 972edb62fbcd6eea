-- The tables, once, in what SQLite and PostgreSQL both know. Only the type of a number that counts by itself has a name
-- of each its own: here it is COUNTED. A statement ends with a semicolon at the end of a line.
--
-- Times and JSON are text on purpose: they read the same everywhere and need no conversion on the way in or out.
-- Rows of lists carry a checksum of their content, checked whenever they are read.

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
    -- The process that works on it; none while nobody does.
    owner TEXT
);
CREATE INDEX idx_turns_conversation ON turns (conversation_id, started_at);

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT REFERENCES turns (id),
    -- Counted in the conversation: an order that does not depend on clocks.
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
    -- The revision that an undo brings back; 0 stands for the empty list before the first one.
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
    -- What a person is asked, when it is time, the event's name, the other todo's id, what is claimed.
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
    -- Counted in the conversation: the order in which they are delivered.
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    said_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    changed_at TEXT,
    -- The turn that it began.
    turn_id TEXT REFERENCES turns (id),
    CONSTRAINT ck_queued_messages_status CHECK (status IN ('queued', 'delivered', 'withdrawn'))
);
CREATE UNIQUE INDEX idx_queued_messages_conversation ON queued_messages (conversation_id, position);

CREATE TABLE tool_calls (
    id TEXT NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    turn_id TEXT REFERENCES turns (id),
    -- Counted in the conversation: an order that depends neither on clocks nor on ids.
    position INTEGER NOT NULL,
    tool TEXT NOT NULL,
    -- Without secrets. What was hidden is in `exact` as long as the call may still run.
    arguments TEXT NOT NULL,
    exact TEXT,
    status TEXT NOT NULL,
    effect TEXT,
    fingerprint TEXT,
    -- What the request said besides: dependencies, priority, keys, time limit; as JSON.
    terms TEXT DEFAULT '{}' NOT NULL,
    workspace TEXT NOT NULL,
    -- The process that has the call in hand.
    owner TEXT NOT NULL,
    result TEXT,
    output_file TEXT,
    error_code TEXT,
    -- Why it failed or was cancelled, for the model.
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
    -- What "always" would mean: beginnings of commands as JSON, and the server.
    prefixes TEXT DEFAULT '[]' NOT NULL,
    server TEXT,
    asked_at TEXT NOT NULL,
    expires_at TEXT,
    on_expiry TEXT NOT NULL,
    outcome TEXT,
    answered_by TEXT,
    answered_at TEXT,
    -- Other arguments as JSON, for `modify`; gone when the call has taken them.
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
    -- Made with a key of the user's: a database that somebody sent brings no permissions along.
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
    -- What the file says, read and completed with what it leaves open.
    json_config TEXT NOT NULL,
    -- The file as it was applied: whether its commands are trusted depends on every character of it.
    source TEXT NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    -- The mission chat.
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    -- The newest moment of its cadence that a cycle was begun for.
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
    -- Where it is planned, and where its todos are worked on.
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
    -- How it is collected, as JSON.
    collector TEXT NOT NULL,
    stale_after_hours FLOAT NOT NULL,
    position INTEGER NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    -- What went wrong when it was last collected; none when nothing did.
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
    -- Counted for the metric: an order that does not depend on clocks.
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
    -- When it was completed or cancelled: what ended long ago is left out of views.
    ended_at TEXT,
    -- Slugs of pillars that it also matters to, as JSON.
    also_affects TEXT DEFAULT '[]' NOT NULL,
    -- What must hold before it can be completed, and what came of looking, as JSON.
    completion_check TEXT,
    check_result TEXT,
    -- When somebody last worked on it: a check must have passed after that.
    worked_at TEXT,
    -- Why the Lead completed it though its check had not passed.
    override_reason TEXT,
    -- When it was found to be overdue.
    overdue_at TEXT,
    -- What the caller named its request: the same request makes one todo, however often it comes.
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
    -- What it is about: a deadline that has passed, work that does not come to an end.
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
    -- Where it is worked on: one run at a time.
    conversation_id TEXT NOT NULL REFERENCES conversations (id),
    agent TEXT NOT NULL,
    -- What it is asked to do, as JSON.
    request TEXT NOT NULL,
    created_by TEXT NOT NULL,
    -- Counts how often it was tried anew after it had failed.
    leg INTEGER DEFAULT '0' NOT NULL,
    -- Counts how often a worker began with it, which is more when workers died.
    attempts INTEGER DEFAULT '0' NOT NULL,
    -- The worker that has it in hand, and the turn it is at.
    executor TEXT,
    turn_id TEXT REFERENCES turns (id),
    -- What a person wants of it, pause or stop, and what they say to it; its worker sees to both.
    wish TEXT,
    message TEXT,
    -- Why it waits, was paused or stopped, or how it failed.
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
    -- Whose todo it is: `plan` with its turn, or `mission` with its mission.
    list TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    holder TEXT,
    -- Grows with every claim of this todo: whoever comes with an older one is too late.
    fence BIGINT NOT NULL,
    claimed_at TEXT NOT NULL,
    lease_until TEXT NOT NULL,
    CONSTRAINT ck_claims_list CHECK (list IN ('plan', 'mission'))
);
CREATE INDEX idx_claims_owner ON claims (list, owner_id);

CREATE TABLE events (
    seq COUNTED NOT NULL PRIMARY KEY,
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
-- Also what stops two writers from continuing one stream in two ways.
CREATE UNIQUE INDEX idx_events_stream ON events (stream, version);
CREATE INDEX idx_events_conversation ON events (conversation_id, seq);

-- What the database itself sees to, whoever asks at the same moment.

-- A conversation has one open turn of its own.
CREATE UNIQUE INDEX idx_turns_open ON turns (conversation_id) WHERE ended_at IS NULL AND parent_turn_id IS NULL;
-- One item of a plan is in progress.
CREATE UNIQUE INDEX idx_turn_todos_one_in_progress ON turn_todos (turn_id) WHERE status = 'in_progress';
-- The next of a plan's todos, found without looking at all of them.
CREATE INDEX idx_turn_todos_pending ON turn_todos (turn_id, priority) WHERE status = 'pending';
-- Found without looking at all that was ever asked or said.
CREATE INDEX idx_todo_conditions_open ON todo_conditions (conversation_id) WHERE status = 'open';
CREATE INDEX idx_queued_messages_queued ON queued_messages (conversation_id, position) WHERE status = 'queued';
-- What a server's tool looked like when it last ran; our own have no fingerprint.
CREATE INDEX idx_tool_calls_tool ON tool_calls (tool, created_at) WHERE fingerprint IS NOT NULL;
-- One run at a time works in a chat (collecting says nothing there), and one question about a todo is open.
CREATE UNIQUE INDEX idx_runs_chat ON runs (conversation_id)
WHERE status IN ('dispatched', 'running', 'waiting', 'paused') AND kind <> 'collect';
CREATE UNIQUE INDEX idx_escalations_one ON escalations (todo_id, kind) WHERE status <> 'answered';
-- The same request makes one todo.
CREATE UNIQUE INDEX idx_mission_todos_request ON mission_todos (mission_id, request_id) WHERE request_id IS NOT NULL;
-- Found without looking at all that ever ended.
CREATE INDEX idx_mission_todos_open ON mission_todos (mission_id, status) WHERE ended_at IS NULL;
CREATE INDEX idx_runs_open ON runs (status, created_at) WHERE ended_at IS NULL;
CREATE INDEX idx_tool_calls_open ON tool_calls (conversation_id) WHERE ended_at IS NULL;
