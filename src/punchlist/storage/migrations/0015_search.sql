-- Model, mode, usage and limits of a turn, for the status lines of other processes. Written by its owner.
CREATE TABLE turn_status (
    turn_id TEXT NOT NULL PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    mode TEXT NOT NULL,
    continuations INTEGER NOT NULL,
    -- NULL if continuation is off.
    continuation_limit INTEGER,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    token_limit BIGINT,
    -- NULL if the model's price is unknown.
    cost FLOAT,
    cost_limit FLOAT,
    -- Tokens of the last request and its reply.
    context_tokens BIGINT NOT NULL,
    context_window BIGINT,
    changed_at TEXT NOT NULL
);

-- The text that can be searched. Derived from the event log; `views/search_index.py` follows it.
CREATE TABLE search_documents (
    id BIGSERIAL NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    -- The id of the message or todo.
    subject TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    mission_id TEXT,
    turn_id TEXT,
    -- Of a message in its conversation.
    position INTEGER,
    at TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_search_documents_subject ON search_documents (kind, subject);
CREATE INDEX idx_search_documents_conversation ON search_documents (conversation_id, kind);
-- One row: the last event that is in the index. Locked while the index is changed.
CREATE TABLE search_progress (
    id INTEGER NOT NULL PRIMARY KEY,
    last_event BIGINT NOT NULL
);
INSERT INTO search_progress (id, last_event) VALUES (1, 0);
-- Only SQLite:
CREATE VIRTUAL TABLE search_index USING fts5 (text, content = 'search_documents', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2');
-- Only PostgreSQL:
ALTER TABLE search_documents ADD COLUMN words TSVECTOR;
-- Only PostgreSQL:
CREATE INDEX idx_search_documents_words ON search_documents USING gin (words);
