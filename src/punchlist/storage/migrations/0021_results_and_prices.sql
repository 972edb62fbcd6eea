-- The run whose agent has got the result of a delegation; a later run delivers what no earlier one did.
ALTER TABLE runs ADD COLUMN delivered_to TEXT;

-- How many of the requests went to models whose price is unknown: they are not part of the cost.
ALTER TABLE mission_spend ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
