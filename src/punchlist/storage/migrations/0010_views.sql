-- Indexes of the views.

-- Readings are ordered by the time at which they were taken. Covers the values of a plot.
CREATE INDEX idx_metric_readings_at ON metric_readings (metric_id, at, position, value);
-- Counts of a board, throughput and cycle time.
CREATE INDEX idx_mission_todos_flow ON mission_todos (mission_id, ended_at, status, pillar_id, started_at, created_at);
-- The history of one todo. Other streams are short.
CREATE INDEX idx_events_mission_subject ON events (stream, subject, version) WHERE substr(stream, 1, 8) = 'mission:';
-- The changes of status of a mission's todos, without its readings and chats.
CREATE INDEX idx_events_mission_flow ON events (stream, at, to_status, from_status)
WHERE substr(stream, 1, 8) = 'mission:' AND to_status IN ('backlog', 'pending', 'in_progress', 'completed', 'cancelled');
CREATE INDEX idx_runs_created ON runs (created_at, id);
