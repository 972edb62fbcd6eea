-- Sub-items, labels, links, comments and files of mission todos.

-- The todo that this one is a part of.
ALTER TABLE mission_todos ADD COLUMN parent_id TEXT REFERENCES mission_todos (id) ON DELETE CASCADE;
-- JSON: an array of texts; NULL without labels.
ALTER TABLE mission_todos ADD COLUMN labels TEXT;
-- An ended todo that was archived is shown again from then on, for as long as one that has just ended.
ALTER TABLE mission_todos ADD COLUMN unarchived_at TEXT;
CREATE INDEX idx_mission_todos_parent ON mission_todos (mission_id, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX idx_mission_todos_unarchived ON mission_todos (mission_id, unarchived_at) WHERE unarchived_at IS NOT NULL;

-- Stored in one direction: `todo_id` blocks, duplicates or follows from `other_id`.
CREATE TABLE todo_links (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    todo_id TEXT NOT NULL REFERENCES mission_todos (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    other_id TEXT NOT NULL REFERENCES mission_todos (id) ON DELETE CASCADE,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT ck_todo_links_kind CHECK (kind IN ('blocks', 'duplicates', 'follows_from'))
);
CREATE UNIQUE INDEX idx_todo_links_todo ON todo_links (todo_id, kind, other_id);
CREATE INDEX idx_todo_links_other ON todo_links (other_id);
CREATE INDEX idx_todo_links_mission ON todo_links (mission_id, kind);

CREATE TABLE todo_comments (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    todo_id TEXT NOT NULL REFERENCES mission_todos (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX idx_todo_comments_todo ON todo_comments (todo_id, created_at, id);
CREATE INDEX idx_todo_comments_mission ON todo_comments (mission_id);

CREATE TABLE todo_files (
    id TEXT NOT NULL PRIMARY KEY,
    mission_id TEXT NOT NULL REFERENCES missions (id) ON DELETE CASCADE,
    todo_id TEXT NOT NULL REFERENCES mission_todos (id) ON DELETE CASCADE,
    -- A path in the workspace, or the name of a stored text.
    name TEXT NOT NULL,
    -- The stored text; NULL for a path.
    content TEXT,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_todo_files_todo ON todo_files (todo_id, name);
CREATE INDEX idx_todo_files_mission ON todo_files (mission_id);
