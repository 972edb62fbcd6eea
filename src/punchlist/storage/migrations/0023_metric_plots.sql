-- The readings of each minute, hour and day, so that a plot of many readings reads few rows. Changed in the transaction
-- of a reading.
CREATE TABLE metric_rollups (
    metric_id TEXT NOT NULL REFERENCES metrics (id) ON DELETE CASCADE,
    -- Length of the period.
    seconds INTEGER NOT NULL,
    -- Counted from 1970 in UTC.
    period INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    total FLOAT NOT NULL,
    low FLOAT NOT NULL,
    high FLOAT NOT NULL,
    last_at TEXT NOT NULL,
    PRIMARY KEY (metric_id, seconds, period)
);
-- Only SQLite:
INSERT INTO metric_rollups
SELECT metric_id, seconds, (taken - ((taken % seconds) + seconds) % seconds) / seconds,
count(*), sum(value), min(value), max(value), max(at)
FROM (SELECT metric_id, value, at, CAST(strftime('%s', substr(at, 1, 19)) AS INTEGER) AS taken FROM metric_readings)
CROSS JOIN (SELECT 60 AS seconds UNION ALL SELECT 3600 UNION ALL SELECT 86400)
GROUP BY 1, 2, 3;
-- Only PostgreSQL:
INSERT INTO metric_rollups
SELECT metric_id, seconds, floor(extract(epoch FROM CAST(at AS timestamptz)) / seconds),
count(*), sum(value), min(value), max(value), max(at)
FROM metric_readings CROSS JOIN (VALUES (60), (3600), (86400)) AS periods (seconds)
GROUP BY 1, 2, 3;

-- The completed todos that touched a metric.
CREATE TABLE metric_marks (
    metric_id TEXT NOT NULL REFERENCES metrics (id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    todo_id TEXT NOT NULL,
    PRIMARY KEY (metric_id, at, todo_id)
);
-- Only SQLite:
INSERT INTO metric_marks
SELECT metrics.id, events.at, events.subject FROM events
JOIN json_each(events.data, '$.metrics_impacted') AS touched
JOIN metrics ON events.stream = 'mission:' || metrics.mission_id AND metrics.slug = touched.value
WHERE substr(events.stream, 1, 8) = 'mission:' AND events.to_status = 'completed';
-- Only PostgreSQL:
INSERT INTO metric_marks
SELECT metrics.id, events.at, events.subject FROM events
CROSS JOIN LATERAL json_array_elements_text(CAST(events.data AS json) -> 'metrics_impacted') AS touched (slug)
JOIN metrics ON events.stream = 'mission:' || metrics.mission_id AND metrics.slug = touched.slug
WHERE substr(events.stream, 1, 8) = 'mission:' AND events.to_status = 'completed';
