-- The open runs of a mission and of a chat, however many have ended.
CREATE INDEX idx_runs_open_mission ON runs (mission_id, status) WHERE ended_at IS NULL;
CREATE INDEX idx_runs_open_chat ON runs (conversation_id, created_at, id) WHERE ended_at IS NULL;
