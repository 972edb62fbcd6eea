-- JSON: the check of a plan todo, its last result, the evidence, who accepted it, and which todo it was copied from.
ALTER TABLE turn_todos ADD COLUMN verification TEXT;
