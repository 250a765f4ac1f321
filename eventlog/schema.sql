-- The event log, schema version 1.
--
-- events is the truth and is never changed. tree and open_runs follow from it and are
-- kept in the same transaction: tree is the compact range (RFC 6962) of all leaves,
-- open_runs the intents that have no outcome yet.

CREATE TABLE events (
	seq             INTEGER PRIMARY KEY,
	event_id        TEXT    NOT NULL,
	ts              INTEGER NOT NULL, -- nanoseconds since the Unix epoch
	type            TEXT    NOT NULL,
	class           TEXT    NOT NULL CHECK (class IN ('frame', 'fact')),
	actor           TEXT    NOT NULL,
	writer          TEXT    NOT NULL,
	context_id      TEXT    NOT NULL,
	session_id      TEXT    NOT NULL,
	conversation_id TEXT    NOT NULL,
	run_id          TEXT    NOT NULL,
	trace_id        TEXT    NOT NULL,
	interaction_id  TEXT    NOT NULL,
	input_id        TEXT    NOT NULL, -- in the header: pruning must not make a second call possible
	payload_len     INTEGER NOT NULL,
	payload_sha256  BLOB    NOT NULL,
	leaf            BLOB    NOT NULL,
	payload         BLOB
) STRICT;

CREATE UNIQUE INDEX events_one_intent_per_input ON events (input_id) WHERE type = 'llm.requested';
CREATE UNIQUE INDEX events_one_outcome_per_run ON events (run_id)
	WHERE type IN ('llm.responded', 'llm.provider_error', 'llm.outcome_unknown');
CREATE UNIQUE INDEX events_one_answer ON events (interaction_id)
	WHERE type IN ('interaction.answered', 'interaction.lapsed');
CREATE UNIQUE INDEX events_one_resolution ON events (interaction_id) WHERE type = 'interaction.resolved';

-- Every index is one more page in a run's commits, so there are few, and they grow at their
-- end: facts by seq serve the views, which filter by type; frames lie between a run's facts.
CREATE INDEX events_fact ON events (seq) WHERE class = 'fact';
CREATE INDEX events_run ON events (run_id, seq) WHERE class = 'fact';
CREATE INDEX events_session ON events (session_id, seq) WHERE class = 'fact';
CREATE INDEX events_interaction ON events (interaction_id, seq) WHERE interaction_id <> '';

CREATE TRIGGER events_are_not_updated BEFORE UPDATE ON events
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TABLE tree (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	size     INTEGER NOT NULL,
	frontier BLOB    NOT NULL -- roots of the complete subtrees, widest first, 32 bytes each
) STRICT;

INSERT INTO tree (id, size, frontier) VALUES (1, 0, x'');

CREATE TABLE open_runs (
	run_id TEXT    PRIMARY KEY, -- so no run has two intents
	seq    INTEGER NOT NULL -- of the intent
) STRICT, WITHOUT ROWID;
