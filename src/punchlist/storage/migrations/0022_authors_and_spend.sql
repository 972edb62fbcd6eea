-- Who posted a message outside turns, and the mission todo that it is about.
ALTER TABLE messages ADD COLUMN posted_by TEXT;
ALTER TABLE messages ADD COLUMN todo_id TEXT;
CREATE INDEX idx_events_said ON events (subject) WHERE action = 'say';
UPDATE messages SET posted_by = (SELECT max(actor) FROM events WHERE action = 'say' AND subject = messages.id)
WHERE turn_id IS NULL;
DROP INDEX idx_events_said;
UPDATE messages SET todo_id = substr(content, 7, 36) WHERE turn_id IS NULL AND substr(content, 1, 6) = '[TODO ';
DROP INDEX idx_messages_todo;
CREATE INDEX idx_messages_todo ON messages (todo_id, created_at, position) WHERE todo_id IS NOT NULL;

-- What was spent also by pillar; empty for requests that belong to none, such as the Lead's, and for earlier ones.
CREATE TABLE mission_spending (
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    day TEXT NOT NULL,
    -- Empty for work that belongs to no todo.
    todo_id TEXT NOT NULL,
    pillar_id TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    unpriced INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (mission_id, day, todo_id, pillar_id)
);
INSERT INTO mission_spending
SELECT mission_id, day, todo_id,
coalesce((SELECT pillar_id FROM mission_todos WHERE mission_todos.id = mission_spend.todo_id), ''),
requests, input_tokens, output_tokens, cost, unpriced FROM mission_spend;
DROP TABLE mission_spend;
CREATE INDEX idx_mission_spending_todo ON mission_spending (todo_id);

-- The conversations of delegated work, those that have not ended last.
CREATE INDEX idx_runs_delegated ON runs (mission_id, COALESCE(ended_at, '9999'), conversation_id, created_at)
WHERE kind = 'delegate';
CREATE INDEX idx_missions_chat ON missions (conversation_id);
CREATE INDEX idx_pillars_chat ON pillars (conversation_id);
CREATE INDEX idx_pillars_todo_chat ON pillars (todo_conversation_id);
-- The mission of what was said and listed in any of its chats.
UPDATE search_documents SET mission_id = coalesce(
    (SELECT min(id) FROM missions WHERE missions.conversation_id = search_documents.conversation_id),
    (SELECT min(mission_id) FROM pillars WHERE pillars.conversation_id = search_documents.conversation_id),
    (SELECT min(mission_id) FROM pillars WHERE pillars.todo_conversation_id = search_documents.conversation_id),
    (SELECT min(mission_id) FROM runs WHERE kind = 'delegate' AND runs.conversation_id = search_documents.conversation_id)
) WHERE mission_id IS NULL;
