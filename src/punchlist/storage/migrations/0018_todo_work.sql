-- The messages of a turn, in their order. The statistics of an index over all messages say that each value of turn_id has
-- many rows when most messages are outside turns, and SQLite then avoids it.
DROP INDEX idx_messages_turn;
CREATE INDEX idx_messages_turn ON messages (turn_id, position) WHERE turn_id IS NOT NULL;
-- The turns of workers, by the turn that delegated to them.
CREATE INDEX idx_turns_parent ON turns (parent_turn_id) WHERE parent_turn_id IS NOT NULL;
