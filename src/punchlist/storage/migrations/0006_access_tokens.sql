-- Named tokens for MCP over HTTP. The token itself is not stored.
CREATE TABLE access_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- SHA-256 of the token.
    digest TEXT NOT NULL,
    -- A MAC, with the key of the user who created it, of everything that the token grants.
    seal TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    CONSTRAINT ck_access_tokens_role CHECK (role IN ('person', 'supervisor', 'lead', 'owner', 'worker', 'viewer'))
);
-- A name belongs to one token that is not revoked.
CREATE UNIQUE INDEX idx_access_tokens_name ON access_tokens (name) WHERE revoked_at IS NULL;
