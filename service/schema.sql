-- The tables of the bridge (projection in view.go), version 7.
CREATE TABLE bridge (
	id       INTEGER PRIMARY KEY CHECK (id = 1),
	running  INTEGER NOT NULL, -- a crash leaves it; the lock tells
	pid      INTEGER NOT NULL,
	channels TEXT    NOT NULL,
	at       INTEGER NOT NULL, -- nanoseconds since the Unix epoch, as all times
	why      TEXT    NOT NULL
) STRICT;
CREATE TABLE channels (
	name   TEXT    PRIMARY KEY,
	cursor TEXT    NOT NULL DEFAULT '',
	error  TEXT    NOT NULL DEFAULT '',
	since  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE contacts (
	channel TEXT    NOT NULL,
	contact TEXT    NOT NULL,
	chat    TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	rights  TEXT    NOT NULL,
	paired  INTEGER NOT NULL,
	pairing TEXT    NOT NULL,
	message TEXT    NOT NULL,
	language TEXT   NOT NULL DEFAULT '', -- empty: as it is configured
	follows INTEGER NOT NULL DEFAULT 0,  -- it is told what happens in the sessions of others
	PRIMARY KEY (channel, contact)
) STRICT;
CREATE TABLE sessions ( -- the current session of a contact in each chat
	channel TEXT    NOT NULL,
	contact TEXT    NOT NULL,
	chat    TEXT    NOT NULL,
	session TEXT    NOT NULL,
	seq     INTEGER NOT NULL,
	PRIMARY KEY (channel, contact, chat)
) STRICT;
CREATE TABLE pairing ( -- the last one that was opened
	id       TEXT    PRIMARY KEY,
	salt     BLOB    NOT NULL,
	hash     BLOB    NOT NULL,
	rights   TEXT    NOT NULL,
	expires  INTEGER NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	used     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE strangers (
	channel  TEXT    NOT NULL,
	contact  TEXT    NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	last     INTEGER NOT NULL DEFAULT 0,
	ignored  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (channel, contact)
) STRICT;
CREATE TABLE inbox (
	input    TEXT    PRIMARY KEY,
	seq      INTEGER NOT NULL,
	received INTEGER NOT NULL,
	fact     TEXT    NOT NULL, -- the payload of service.message_received, as files and its sender's confirmation have changed it
	channel  TEXT    NOT NULL,
	contact  TEXT    NOT NULL,
	finished TEXT    NOT NULL DEFAULT '',
	run      TEXT    NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX inbox_waiting ON inbox (seq) WHERE finished = '';
CREATE TABLE outbox (
	id       TEXT    PRIMARY KEY,
	seq      INTEGER NOT NULL,
	fact     TEXT    NOT NULL, -- the payload of service.message_queued
	input    TEXT    NOT NULL, -- that it is about
	channel  TEXT    NOT NULL,
	contact  TEXT    NOT NULL,
	kind     TEXT    NOT NULL,
	question TEXT    NOT NULL,
	state    TEXT    NOT NULL, -- queued, started, sent, failed
	attempts INTEGER NOT NULL DEFAULT 0,
	platform TEXT    NOT NULL DEFAULT '',
	error    TEXT    NOT NULL DEFAULT '',
	repeated INTEGER NOT NULL DEFAULT 0, -- the platform may have taken it before
	started  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_waiting ON outbox (seq) WHERE state IN ('queued', 'started');
CREATE INDEX outbox_platform ON outbox (channel, platform) WHERE platform <> '';
CREATE TABLE questions ( -- that were put to contacts
	id  TEXT PRIMARY KEY,
	how TEXT NOT NULL DEFAULT '' -- it ended; empty: nobody was told
) STRICT;
