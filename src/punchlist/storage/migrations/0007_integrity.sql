-- The anchor: the newest event that is known to exist, signed. Shows when events are removed from the end of the log.
CREATE TABLE chain_anchor (
    id INTEGER NOT NULL PRIMARY KEY,
    -- Events from this number on are signed.
    signed_from BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    key_id TEXT NOT NULL,
    signature TEXT NOT NULL
);
INSERT INTO chain_anchor (id, signed_from, seq, hash, key_id, signature)
SELECT 1, coalesce(max(seq), 0) + 1, 0, '', '', '' FROM events;

-- The checksum of a plan todo covers its priority.
UPDATE turn_todos SET checksum = checksum + priority * 4294967296;
