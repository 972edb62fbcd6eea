-- What was answered to requests of the HTTP API with an Idempotency-Key, and to webhooks.

CREATE TABLE answered_requests (
  client TEXT NOT NULL, -- the id of the access token
  request_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL, -- of method, path and body
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body TEXT NOT NULL,
  answered_at TEXT NOT NULL,
  PRIMARY KEY (client, request_key)
);
CREATE INDEX idx_answered_requests_at ON answered_requests (answered_at);
