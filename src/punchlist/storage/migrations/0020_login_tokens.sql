-- The cookie of a browser that logged in with a named token ends with that token.
ALTER TABLE access_tokens ADD COLUMN parent_id TEXT;
CREATE INDEX idx_access_tokens_parent ON access_tokens (parent_id) WHERE parent_id IS NOT NULL;
