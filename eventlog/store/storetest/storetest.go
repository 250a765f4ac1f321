// Package storetest lets tests change a log as another program could.
package storetest

// Editable has the SQL statements that make the view events writable on one connection. Tests can then change a text
// of an event although the table entries has only its number.
const Editable = `
CREATE TEMP TRIGGER edit_events INSTEAD OF UPDATE ON events BEGIN
	INSERT OR IGNORE INTO names (name)
	SELECT value FROM json_each(json_array(NEW.type, NEW.class, NEW.actor, NEW.writer, NEW.context_id, NEW.session_id,
		NEW.conversation_id, NEW.run_id, NEW.trace_id, NEW.interaction_id, NEW.input_id));
	UPDATE entries
	SET seq = NEW.seq, event_id = coalesce(unhex(replace(NEW.event_id, '-', '')), CAST(NEW.event_id AS BLOB)), ts = NEW.ts,
		type = (SELECT id FROM names WHERE name = NEW.type),
		class = (SELECT id FROM names WHERE name = NEW.class),
		actor = (SELECT id FROM names WHERE name = NEW.actor),
		writer = (SELECT id FROM names WHERE name = NEW.writer),
		context_id = (SELECT id FROM names WHERE name = NEW.context_id),
		session_id = (SELECT id FROM names WHERE name = NEW.session_id),
		conversation_id = (SELECT id FROM names WHERE name = NEW.conversation_id),
		run_id = (SELECT id FROM names WHERE name = NEW.run_id),
		trace_id = (SELECT id FROM names WHERE name = NEW.trace_id),
		interaction_id = (SELECT id FROM names WHERE name = NEW.interaction_id),
		input_id = (SELECT id FROM names WHERE name = NEW.input_id),
		payload_len = NEW.payload_len, payload_sha256 = NEW.payload_sha256, leaf = NEW.leaf, payload = NEW.payload
	WHERE seq = OLD.seq;
END;

CREATE TEMP TRIGGER add_events INSTEAD OF INSERT ON events BEGIN
	INSERT OR IGNORE INTO names (name)
	SELECT value FROM json_each(json_array(NEW.type, NEW.class, NEW.actor, NEW.writer, NEW.context_id, NEW.session_id,
		NEW.conversation_id, NEW.run_id, NEW.trace_id, NEW.interaction_id, NEW.input_id));
	INSERT INTO entries VALUES (NEW.seq,
		coalesce(unhex(replace(NEW.event_id, '-', '')), CAST(NEW.event_id AS BLOB)), NEW.ts,
		(SELECT id FROM names WHERE name = NEW.type),
		(SELECT id FROM names WHERE name = NEW.class),
		(SELECT id FROM names WHERE name = NEW.actor),
		(SELECT id FROM names WHERE name = NEW.writer),
		(SELECT id FROM names WHERE name = NEW.context_id),
		(SELECT id FROM names WHERE name = NEW.session_id),
		(SELECT id FROM names WHERE name = NEW.conversation_id),
		(SELECT id FROM names WHERE name = NEW.run_id),
		(SELECT id FROM names WHERE name = NEW.trace_id),
		(SELECT id FROM names WHERE name = NEW.interaction_id),
		(SELECT id FROM names WHERE name = NEW.input_id),
		NEW.payload_len, NEW.payload_sha256, NEW.leaf, NEW.payload);
END;

CREATE TEMP TRIGGER remove_events INSTEAD OF DELETE ON events BEGIN
	DELETE FROM entries WHERE seq = OLD.seq;
END;
`
