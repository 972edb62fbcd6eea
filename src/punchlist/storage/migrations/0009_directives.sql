-- Standing instructions of people to a mission, shown to its agents in every request until they end.
CREATE TABLE directives (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    -- Counts within the mission; people name a directive by it.
    number INTEGER NOT NULL,
    content TEXT NOT NULL,
    -- The last day, or the moment until which it holds; NULL until a person ends it.
    holds_until TEXT,
    status TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    ended_at TEXT,
    CONSTRAINT ck_directives_status CHECK (status IN ('open', 'ended'))
);
CREATE UNIQUE INDEX idx_directives_mission ON directives (mission_id, number);
