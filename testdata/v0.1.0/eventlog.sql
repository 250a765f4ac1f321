-- The event log, schema version 3.
--
-- entries has the events. It is the truth, and nothing of it changes except that a payload may be emptied. It stores
-- texts by their numbers in names; the view events has the texts. nodes and open_runs follow from the events and
-- change in the same transaction: nodes has the inner hashes of the tree (RFC 6962) at every eighth level, and
-- open_runs has the intents without an outcome. withheld and absent are empty except in imported files.

CREATE TABLE names (
	id   INTEGER PRIMARY KEY,
	name TEXT    NOT NULL UNIQUE
) STRICT;

-- The statements below use these numbers, so they are the same in every log.
INSERT INTO names VALUES (0, ''), (1, 'fact'), (2, 'frame'), (3, 'llm.requested'), (4, 'llm.responded'),
	(5, 'llm.provider_error'), (6, 'llm.outcome_unknown'), (7, 'interaction.answered'), (8, 'interaction.lapsed'),
	(9, 'interaction.resolved');

CREATE TRIGGER names_are_not_updated BEFORE UPDATE ON names
BEGIN
	SELECT RAISE(ABORT, 'names are append-only');
END;

CREATE TRIGGER names_are_not_deleted BEFORE DELETE ON names
BEGIN
	SELECT RAISE(ABORT, 'names are append-only');
END;

CREATE TABLE entries (
	seq             INTEGER PRIMARY KEY,
	event_id        BLOB    NOT NULL, -- the 16 bytes of the UUID
	ts              INTEGER NOT NULL, -- nanoseconds since the Unix epoch
	type            INTEGER NOT NULL, -- this column and the next ten have the id of a name
	class           INTEGER NOT NULL CHECK (class IN (1, 2)),
	actor           INTEGER NOT NULL,
	writer          INTEGER NOT NULL,
	context_id      INTEGER NOT NULL,
	session_id      INTEGER NOT NULL,
	conversation_id INTEGER NOT NULL,
	run_id          INTEGER NOT NULL,
	trace_id        INTEGER NOT NULL,
	interaction_id  INTEGER NOT NULL,
	input_id        INTEGER NOT NULL, -- in the header: pruning must not make a second call possible
	payload_len     INTEGER NOT NULL,
	payload_sha256  BLOB    NOT NULL,
	leaf            BLOB    NOT NULL,
	payload         BLOB
) STRICT;

CREATE UNIQUE INDEX events_one_intent_per_input ON entries (input_id) WHERE type = 3;
CREATE UNIQUE INDEX events_one_outcome_per_run ON entries (run_id) WHERE type = 4 OR type = 5 OR type = 6;
CREATE UNIQUE INDEX events_one_answer ON entries (interaction_id) WHERE type IN (7, 8);
CREATE UNIQUE INDEX events_one_resolution ON entries (interaction_id) WHERE type = 9;

-- Every index is one more page in a run's commits, so there are few, and they grow at their
-- end: facts by seq serve the views, which filter by type; frames lie between a run's facts.
CREATE INDEX events_fact ON entries (seq) WHERE class = 1;
CREATE INDEX events_run ON entries (run_id, seq) WHERE class = 1;
CREATE INDEX events_session ON entries (session_id, seq) WHERE class = 1;
CREATE INDEX events_interaction ON entries (interaction_id, seq) WHERE interaction_id <> 0;

-- Pruning empties payloads; an event of its own says so, and Verify compares the two.
CREATE TRIGGER events_lose_nothing_but_payloads BEFORE UPDATE ON entries
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

CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON entries
BEGIN
	SELECT RAISE(ABORT, 'events are append-only');
END;

-- Perlica itself does not use this view. It reads entries and names, because a changed view could show invented events.
CREATE VIEW events AS
SELECT
	seq,
	lower(substr(hex(event_id), 1, 8) || '-' || substr(hex(event_id), 9, 4) || '-' || substr(hex(event_id), 13, 4) || '-'
		|| substr(hex(event_id), 17, 4) || '-' || substr(hex(event_id), 21)) AS event_id,
	ts,
	(SELECT name FROM names WHERE id = type) AS type,
	(SELECT name FROM names WHERE id = class) AS class,
	(SELECT name FROM names WHERE id = actor) AS actor,
	(SELECT name FROM names WHERE id = writer) AS writer,
	(SELECT name FROM names WHERE id = context_id) AS context_id,
	(SELECT name FROM names WHERE id = session_id) AS session_id,
	(SELECT name FROM names WHERE id = conversation_id) AS conversation_id,
	(SELECT name FROM names WHERE id = run_id) AS run_id,
	(SELECT name FROM names WHERE id = trace_id) AS trace_id,
	(SELECT name FROM names WHERE id = interaction_id) AS interaction_id,
	(SELECT name FROM names WHERE id = input_id) AS input_id,
	payload_len, payload_sha256, leaf, payload
FROM entries;

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
