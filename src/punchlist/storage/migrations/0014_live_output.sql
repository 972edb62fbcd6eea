-- Requests to interrupt a turn; the process that works on the turn notices them.
CREATE TABLE turn_interrupts (
    turn_id TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    requested_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_at TEXT NOT NULL
);
-- Text that a model is streaming and output of running calls, for other processes. Bounded, and deleted when the reply
-- or the result is stored. The newest row is never deleted, because SQLite would use its number again.
CREATE TABLE live_output (
    seq BIGSERIAL NOT NULL PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    -- Empty for the text of the reply.
    call_id TEXT NOT NULL,
    -- How many characters of the reply or the call came before.
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    -- 1 for the row that says that the reply or the result is stored.
    ended INTEGER NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX idx_live_output_turn ON live_output (turn_id, call_id);
