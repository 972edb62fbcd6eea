-- A run that waits or is paused leaves its chat to other runs: several turns of a chat can be open, one of each run.

-- The run that works on the turn, also on the turns of its workers; NULL in a session.
ALTER TABLE turns ADD COLUMN run_id TEXT;
DROP INDEX idx_turns_open;
CREATE UNIQUE INDEX idx_turns_open ON turns (conversation_id)
WHERE ended_at IS NULL AND parent_turn_id IS NULL AND run_id IS NULL;
CREATE UNIQUE INDEX idx_turns_run ON turns (run_id)
WHERE ended_at IS NULL AND parent_turn_id IS NULL AND run_id IS NOT NULL;
-- One run at a time works in a chat. A collection writes no turn.
DROP INDEX idx_runs_chat;
CREATE UNIQUE INDEX idx_runs_chat ON runs (conversation_id)
WHERE status IN ('dispatched', 'running') AND kind <> 'collect';
-- The reports and the feedback on a mission todo, by the heading `[TODO id`.
CREATE INDEX idx_messages_todo ON messages (substr(content, 1, 42))
WHERE turn_id IS NULL AND substr(content, 1, 6) = '[TODO ';

-- What the inbox lists.
CREATE INDEX idx_escalations_open ON escalations (asked_at) WHERE status <> 'answered';
CREATE INDEX idx_inbox_requests_acknowledged ON inbox_requests (id) WHERE acknowledged_at IS NOT NULL;
