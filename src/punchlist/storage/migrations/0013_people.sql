-- What people and missions need of each other: numbered requests, paused missions, budgets, workers, notifications.

-- The number by which people name a request in the inbox. A number is never given to another request.
CREATE TABLE inbox_requests (
    number INTEGER NOT NULL PRIMARY KEY,
    -- Of the approval, condition, escalation or run; else a key that names what is wrong.
    id TEXT NOT NULL,
    -- A request that a person has only to know of is not listed any more once it is acknowledged.
    acknowledged_by TEXT,
    acknowledged_at TEXT
);
CREATE UNIQUE INDEX idx_inbox_requests_id ON inbox_requests (id);
-- Locked while numbers are assigned.
INSERT INTO inbox_requests (number, id) VALUES (0, '');

ALTER TABLE missions ADD COLUMN paused_at TEXT;
ALTER TABLE missions ADD COLUMN paused_by TEXT;
ALTER TABLE missions ADD COLUMN pause_reason TEXT;

-- What a mission's requests to models used, by day in the mission's time zone.
CREATE TABLE mission_spend (
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    -- Empty for work that belongs to no todo.
    todo_id TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    PRIMARY KEY (mission_id, day, todo_id)
);
CREATE INDEX idx_mission_spend_todo ON mission_spend (todo_id);

-- A budget that was reached; open until work continues.
CREATE TABLE budget_stops (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    -- NULL for the budget of a day.
    todo_id TEXT REFERENCES mission_todos (id) ON DELETE CASCADE,
    explanation TEXT NOT NULL,
    reached_at TEXT NOT NULL,
    ended_at TEXT
);
CREATE INDEX idx_budget_stops_open ON budget_stops (mission_id) WHERE ended_at IS NULL;

-- Processes that execute runs. `seen_at` is renewed while they live.
CREATE TABLE workers (
    id TEXT NOT NULL PRIMARY KEY,
    slots INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    ended_at TEXT
);
CREATE INDEX idx_workers_seen ON workers (seen_at);

-- One row per request and channel: a request is sent once, whichever process sends it.
CREATE TABLE notifications (
    id TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    urgency TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    -- Not sent before this time: the window for merging, quiet hours, or a retry.
    due_at TEXT NOT NULL,
    -- The process that sends it, and until when others leave it alone.
    claimed_by TEXT,
    claimed_until TEXT,
    error TEXT,
    created_at TEXT NOT NULL,
    ended_at TEXT,
    CONSTRAINT ck_notifications_status CHECK (status IN ('pending', 'sent', 'failed', 'withdrawn'))
);
CREATE UNIQUE INDEX idx_notifications_request ON notifications (channel, request_id);
CREATE INDEX idx_notifications_pending ON notifications (due_at) WHERE status = 'pending';

-- Failed cycles and planning runs, and whether a newer run has replaced one.
CREATE INDEX idx_runs_failed ON runs (created_at, id) WHERE status = 'failed';
CREATE INDEX idx_runs_conversation ON runs (conversation_id, kind, created_at, id);
