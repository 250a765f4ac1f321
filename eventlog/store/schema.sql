-- The event log, schema version 2.
--
-- events is the truth; nothing of it changes but that a payload may be emptied. nodes and
-- open_runs follow from it and are kept in the same transaction: nodes are the inner
-- hashes of the tree (RFC 6962) at every eighth level, open_runs the intents that have
-- no outcome yet. withheld and absent are empty but in files that were imported.

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
	WHERE type = 'llm.responded' OR type = 'llm.provider_error' OR type = 'llm.outcome_unknown';
CREATE UNIQUE INDEX events_one_answer ON events (interaction_id)
	WHERE type IN ('interaction.answered', 'interaction.lapsed');
CREATE UNIQUE INDEX events_one_resolution ON events (interaction_id) WHERE type = 'interaction.resolved';

-- Every index is one more page in a run's commits, so there are few, and they grow at their
-- end: facts by seq serve the views, which filter by type; frames lie between a run's facts.
CREATE INDEX events_fact ON events (seq) WHERE class = 'fact';
CREATE INDEX events_run ON events (run_id, seq) WHERE class = 'fact';
CREATE INDEX events_session ON events (session_id, seq) WHERE class = 'fact';
CREATE INDEX events_interaction ON events (interaction_id, seq) WHERE interaction_id <> '';

-- Pruning empties payloads; an event of its own says so, and Verify compares the two.
CREATE TRIGGER events_lose_nothing_but_payloads BEFORE UPDATE ON events
WHEN NEW.payload IS NOT NULL
	OR (NEW.seq, NEW.event_id, NEW.ts, NEW.type, NEW.class, NEW.actor, NEW.writer, NEW.context_id,
		NEW.session_id, NEW.conversation_id, NEW.run_id, NEW.trace_id, NEW.interaction_id, NEW.input_id,
		NEW.payload_len, NEW.payload_sha256, NEW.leaf)
	IS NOT (OLD.seq, OLD.event_id, OLD.ts, OLD.type, OLD.class, OLD.actor, OLD.writer, OLD.context_id,
		OLD.session_id, OLD.conversation_id, OLD.run_id, OLD.trace_id, OLD.interaction_id, OLD.input_id,
		OLD.payload_len, OLD.payload_sha256, OLD.leaf)
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TABLE nodes (
	level INTEGER NOT NULL, -- 8, 16, 24, ...: the root of 2^level leaves
	n     INTEGER NOT NULL, -- of the leaves from n * 2^level on, counted from 0
	hash  BLOB    NOT NULL,
	PRIMARY KEY (level, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE open_runs (
	run_id TEXT    PRIMARY KEY, -- so no run has two intents
	seq    INTEGER NOT NULL -- of the intent
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
	id   INTEGER PRIMARY KEY,
	size INTEGER NOT NULL,
	note TEXT    NOT NULL -- as signed: https://c2sp.org/tlog-checkpoint
) STRICT;

CREATE INDEX checkpoints_size ON checkpoints (size);

CREATE TRIGGER checkpoints_are_not_updated BEFORE UPDATE ON checkpoints
BEGIN
	SELECT RAISE(ABORT, 'checkpoints are append-only');
END;

CREATE TRIGGER checkpoints_are_not_deleted BEFORE DELETE ON checkpoints
BEGIN
	SELECT RAISE(ABORT, 'checkpoints are append-only');
END;

CREATE TABLE withheld (
	seq INTEGER PRIMARY KEY, -- of an event that came without its payload
	why TEXT    NOT NULL -- 'masked', 'pruned'
) STRICT;

CREATE TABLE absent (
	seq   INTEGER PRIMARY KEY, -- of the first of 2^level events that did not come
	level INTEGER NOT NULL,
	hash  BLOB    NOT NULL -- of their subtree
) STRICT;
