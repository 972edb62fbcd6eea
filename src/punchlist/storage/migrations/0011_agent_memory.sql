-- What an owner may not decide itself, until the Lead or a person accepts or declines it.
CREATE TABLE recommendations (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    -- Counts within the mission; people and agents name a recommendation by it.
    number INTEGER NOT NULL,
    pillar_id TEXT REFERENCES pillars (id),
    todo_id TEXT REFERENCES mission_todos (id),
    -- An action on the todo, or a note.
    kind TEXT NOT NULL,
    -- The arguments of the action, as a JSON object.
    payload TEXT NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    decided_by TEXT,
    decided_at TEXT,
    decision TEXT,
    CONSTRAINT ck_recommendations_status CHECK (status IN ('open', 'accepted', 'declined'))
);
CREATE UNIQUE INDEX idx_recommendations_mission ON recommendations (mission_id, number);
CREATE INDEX idx_recommendations_open ON recommendations (mission_id, todo_id) WHERE status = 'open';

-- The running summary of a chat for one agent. Derived: deleting a row costs only the work to summarise again.
CREATE TABLE chat_summaries (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    agent_id TEXT NOT NULL,
    -- The last message that it covers.
    position INTEGER NOT NULL,
    content TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (conversation_id, agent_id)
);
