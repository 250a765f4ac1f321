-- The database of a team, the hub. Hub.MakeSchema runs this file once, in a database without these tables.

-- Nobody can log in as these two roles. The roles with which people log in become members of them. Roles belong to the
-- whole server, so another database may create the same role or membership at the same time.
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perlica_member') THEN
		BEGIN
			CREATE ROLE perlica_member NOLOGIN;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
		END;
	END IF;
	IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'perlica_admin') THEN
		BEGIN
			CREATE ROLE perlica_admin NOLOGIN IN ROLE perlica_member;
		EXCEPTION WHEN duplicate_object OR unique_violation THEN
		END;
	END IF;
	-- From PostgreSQL 16 on, the creator of a role may grant the role, but does not have the rights of the role.
	IF NOT pg_has_role(current_user, 'perlica_admin', 'usage') THEN
		BEGIN
			EXECUTE format('GRANT perlica_admin TO %I', current_user);
		EXCEPTION WHEN unique_violation THEN
		WHEN insufficient_privilege THEN
			RAISE insufficient_privilege USING MESSAGE = format(
				'the role perlica_admin is there, made by another role of this server, which grants it: GRANT perlica_admin, perlica_member TO %I WITH ADMIN OPTION', current_user);
		END;
	END IF;
END $$;
CREATE SCHEMA IF NOT EXISTS perlica;

-- This table has one row, with the version of this schema.
CREATE TABLE perlica.schema (version integer PRIMARY KEY);

-- This table has one row, with the team of this database.
CREATE TABLE perlica.team (
	one   boolean PRIMARY KEY DEFAULT true CHECK (one),
	id    text NOT NULL,
	name  text NOT NULL,
	admin text NOT NULL -- the verifier key of the first admin, which signs the statements about the other members
);

-- A generation is a period in which this server lost no commits. A promoted standby or a restored backup begins a new
-- generation. At most one generation has not ended.
CREATE TABLE perlica.generations (
	name     text PRIMARY KEY,
	system   bigint NOT NULL,
	timeline text NOT NULL,
	begun    timestamptz NOT NULL DEFAULT now(),
	ended    timestamptz,
	by       text NOT NULL
);
CREATE UNIQUE INDEX generations_one_current ON perlica.generations ((true)) WHERE ended IS NULL;

-- Requests to join the team. With a signed row in members, an admin makes the requester a member.
CREATE TABLE perlica.requests (
	name  text PRIMARY KEY,
	key   text NOT NULL,
	login name NOT NULL,
	made  timestamptz NOT NULL DEFAULT now()
);

-- Statements that a member has joined, has other rights or has left, each signed by an admin. The newest statement
-- about a name is valid.
CREATE TABLE perlica.members (
	name      text NOT NULL,
	version   integer NOT NULL,
	key       text NOT NULL,
	rights    text[] NOT NULL,
	gone      boolean NOT NULL,
	login     name NOT NULL,
	signer    text NOT NULL,
	signature bytea NOT NULL,
	made      timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (name, version)
);

-- The present members with their login roles. Only a trigger on members writes this table. The policies read it instead
-- of members, because one small row is faster to find.
CREATE TABLE perlica.logins (
	login name NOT NULL, -- the login role of the member
	name  text NOT NULL UNIQUE, -- the name of a present member
	PRIMARY KEY (login, name)
);

CREATE TABLE perlica.workers (
	name      text PRIMARY KEY,
	origin    text NOT NULL, -- the name of the worker's log in its checkpoints
	projects  text[] NOT NULL,
	providers text[] NOT NULL,
	labels    text[] NOT NULL,
	slots     integer NOT NULL,
	heard     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE perlica.inputs (
	id          text PRIMARY KEY,
	generation  text NOT NULL REFERENCES perlica.generations,
	sender      text NOT NULL,
	digest      text NOT NULL,
	project     text NOT NULL,
	provider    text NOT NULL,
	labels      text[] NOT NULL,
	worker      text NOT NULL DEFAULT '', -- the worker that has the session, if the input continues one
	session     text NOT NULL DEFAULT '', -- the session that the input continues, if any
	permissions text NOT NULL,
	priority    integer NOT NULL,
	not_before  timestamptz,
	replaces    text NOT NULL, -- the id of the input that this one replaces
	attachments jsonb NOT NULL,
	signature   bytea NOT NULL,
	submitted   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inputs_newest ON perlica.inputs (submitted);

-- The content of inputs: the text is part 0, and the attachments are the parts from 1 on. Each row has one piece of a
-- part, because large parts are split over several rows.
CREATE TABLE perlica.payloads (
	input text NOT NULL REFERENCES perlica.inputs,
	part  integer NOT NULL,
	piece integer NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (input, part, piece)
);
ALTER TABLE perlica.payloads ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A lane is a set of requirements that inputs have of a worker, such as the project and the provider. There are few
-- different lanes.
CREATE TABLE perlica.lanes (
	lane     text PRIMARY KEY,
	project  text NOT NULL,
	provider text NOT NULL,
	labels   text[] NOT NULL,
	worker   text NOT NULL DEFAULT ''
);

-- One row for each input that no worker has claimed. The index queue_ready finds the ready rows of a lane in the order
-- in which workers claim them, even in a long queue.
CREATE TABLE perlica.queue (
	input      text PRIMARY KEY REFERENCES perlica.inputs,
	generation text NOT NULL,
	sender     text NOT NULL,
	lane       text NOT NULL,
	priority   integer NOT NULL,
	place      bigint GENERATED ALWAYS AS IDENTITY,
	not_before timestamptz,
	ready      boolean NOT NULL
);
CREATE INDEX queue_ready ON perlica.queue (lane, priority DESC, place) WHERE ready;
CREATE INDEX queue_waiting ON perlica.queue (not_before) WHERE NOT ready;

-- Claims: a worker claims an input before it calls an agent. An input can have only one claim, ever. There is no
-- foreign key to inputs, because it would write to the row of the input. The policy checks that the input exists, and
-- inputs are never deleted.
CREATE TABLE perlica.claims (
	input      text PRIMARY KEY,
	worker     text NOT NULL,
	generation text NOT NULL,
	position   bigint NOT NULL, -- the position in the write-ahead log
	at         timestamptz NOT NULL DEFAULT now(),
	reported   boolean NOT NULL DEFAULT false -- the input has an outcome
);
CREATE INDEX claims_open ON perlica.claims (worker) WHERE NOT reported;

-- Outcomes of claimed inputs, as the log of the claiming worker has them. The worker signs each one. When the result is
-- pruned, its digest stays.
CREATE TABLE perlica.outcomes (
	input     text PRIMARY KEY REFERENCES perlica.claims,
	worker    text NOT NULL,
	outcome   text NOT NULL, -- responded, provider_error, outcome_unknown, refused
	result    json NOT NULL, -- byte for byte as the worker has signed it
	digest    text NOT NULL,
	signature bytea NOT NULL,
	at        timestamptz NOT NULL DEFAULT now()
);

-- Inputs that were closed without an outcome. They were withdrawn from the queue, or an admin adopted a new generation,
-- or a member resolved them by a signed opinion. Each member can write one opinion, so that an unsigned opinion does
-- not prevent those of others.
CREATE TABLE perlica.closings (
	input     text NOT NULL REFERENCES perlica.inputs,
	kind      text NOT NULL CHECK (kind IN ('withdrawn', 'adopted', 'resolved')),
	by        text NOT NULL,
	note      text NOT NULL,
	signature bytea, -- only with the kind resolved
	at        timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (input, kind, by)
);

CREATE TABLE perlica.questions (
	id       text PRIMARY KEY,
	input    text NOT NULL REFERENCES perlica.claims,
	worker   text NOT NULL,
	question json NOT NULL, -- byte for byte: the signature of an answer covers it
	asked    timestamptz NOT NULL DEFAULT now(),
	closed   jsonb -- the end of the question in the worker's log
);
CREATE INDEX questions_open ON perlica.questions (worker) WHERE closed IS NULL;

-- Answers of members to questions, and requests to stop inputs. They are only proposals: the log of the worker decides.
CREATE TABLE perlica.answers (
	question  text NOT NULL REFERENCES perlica.questions,
	member    text NOT NULL,
	option    text NOT NULL,
	text      text NOT NULL,
	signature bytea NOT NULL,
	verdict   text, -- the verdict of the worker; empty means that the answer was accepted
	at        timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (question, member)
);
CREATE TABLE perlica.cancels (
	input     text NOT NULL REFERENCES perlica.inputs,
	member    text NOT NULL,
	signature bytea NOT NULL,
	at        timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (input, member)
);

-- The logs of the workers' work for the team. Each worker has one log.
CREATE TABLE perlica.logs (
	worker text PRIMARY KEY,
	origin text NOT NULL UNIQUE, -- the name of the log in its checkpoints
	forked bigint, -- the number of an event that differs in the log and in its copy; the worker is then stopped
	made   timestamptz NOT NULL DEFAULT now()
);

-- Copies of the events in the workers' logs. leaf is the hash of the header, and the header contains the hash of the
-- payload.
CREATE TABLE perlica.events (
	worker  text NOT NULL,
	seq     bigint NOT NULL,
	leaf    bytea NOT NULL,
	header  bytea NOT NULL,
	payload bytea, -- null: the worker removed it from its log
	PRIMARY KEY (worker, seq)
);
-- Each reader of a copy counts the missing payloads. This index makes the count fast.
CREATE INDEX events_gone ON perlica.events (worker) WHERE payload IS NULL;

-- The signed checkpoints of the workers' logs, and the signatures of the keepers. A keeper is a member that has
-- verified the copy of a log.
CREATE TABLE perlica.checkpoints (
	worker text NOT NULL,
	size   bigint NOT NULL,
	note   text NOT NULL,
	PRIMARY KEY (worker, size)
);
CREATE TABLE perlica.cosignatures (
	worker text NOT NULL,
	size   bigint NOT NULL,
	keeper text NOT NULL,
	line   text NOT NULL,
	made   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (worker, size, keeper),
	FOREIGN KEY (worker, size) REFERENCES perlica.checkpoints
);

-- This trigger function updates logins after a change of members. It runs with the rights of the schema's owner, so it
-- refuses to run for any other table.
CREATE FUNCTION perlica.keep_logins() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_RELID <> 'perlica.members'::regclass THEN
		RAISE insufficient_privilege;
	END IF;
	IF TG_OP IN ('UPDATE', 'DELETE') THEN
		DELETE FROM perlica.logins WHERE name = OLD.name;
	END IF;
	IF TG_OP IN ('UPDATE', 'INSERT') THEN
		DELETE FROM perlica.logins WHERE name = NEW.name;
	END IF;
	INSERT INTO perlica.logins (login, name)
	SELECT m.login, m.name
	FROM perlica.members m
	WHERE m.name IN (CASE WHEN TG_OP = 'INSERT' THEN NEW.name ELSE OLD.name END, CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END)
	  AND NOT m.gone
	  AND NOT EXISTS (SELECT FROM perlica.members n WHERE n.name = m.name AND n.version > m.version);
	RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION perlica.keep_logins() FROM PUBLIC;
CREATE TRIGGER keep_logins AFTER INSERT OR UPDATE OR DELETE ON perlica.members FOR EACH ROW EXECUTE FUNCTION perlica.keep_logins();

-- BEGIN ATOMIC makes PostgreSQL look up the names in these functions now. Otherwise it would use the search_path of the
-- caller, and a role could provide its own operators.

-- names returns the names of the members that log in with the current role. It sorts nothing: see Hub.connect.
CREATE FUNCTION perlica.names() RETURNS SETOF text LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT l.name FROM perlica.logins l WHERE l.login = current_user;
END;

-- mine reports whether the member with the name in who logs in with the current role.
CREATE FUNCTION perlica.mine(who text) RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT EXISTS (SELECT FROM perlica.logins l WHERE l.login = current_user AND l.name = who);
END;

-- may_sign reports whether the current role may insert statements of this signer into members. The statements about the
-- first admin have no signer. Only the role that inserted the first of them may insert further ones.
CREATE FUNCTION perlica.may_sign(signer text) RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE signer
	       WHEN '' THEN coalesce((SELECT m.login = current_user FROM perlica.members m WHERE m.signer = '' ORDER BY m.made, m.version LIMIT 1), true)
	       ELSE perlica.mine(signer) END;
END;

-- next_version returns the required version of the next statement about a name. Otherwise a statement with a much
-- greater version, even without a valid signature, would hide all later ones.
CREATE FUNCTION perlica.next_version(who text) RETURNS integer LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT 1 + coalesce(max(m.version), 0) FROM perlica.members m WHERE m.name = who;
END;

-- The grants and policies below let a role insert only the rows of its own member.
GRANT USAGE ON SCHEMA perlica TO perlica_member;
GRANT SELECT ON ALL TABLES IN SCHEMA perlica TO perlica_member;
GRANT INSERT ON perlica.requests, perlica.workers, perlica.inputs, perlica.payloads, perlica.lanes, perlica.queue, perlica.claims,
	perlica.outcomes, perlica.closings, perlica.questions, perlica.answers, perlica.cancels, perlica.logs, perlica.events,
	perlica.checkpoints, perlica.cosignatures TO perlica_member;
GRANT UPDATE (ended) ON perlica.generations TO perlica_member; -- SELECT FOR SHARE needs this right; the policy allows no change
GRANT UPDATE (origin, projects, providers, labels, slots, heard) ON perlica.workers TO perlica_member;
GRANT UPDATE (ready) ON perlica.queue TO perlica_member;
GRANT UPDATE (reported) ON perlica.claims TO perlica_member;
GRANT UPDATE (outcome, digest, signature) ON perlica.outcomes TO perlica_member;
GRANT UPDATE (note, signature, at) ON perlica.closings TO perlica_member;
GRANT UPDATE (closed) ON perlica.questions TO perlica_member;
GRANT UPDATE (verdict) ON perlica.answers TO perlica_member;
GRANT UPDATE (signature) ON perlica.cancels TO perlica_member;
GRANT UPDATE (forked) ON perlica.logs TO perlica_member;
GRANT DELETE ON perlica.queue TO perlica_member;
-- Pruning removes texts, results, questions and payloads, so it needs these rights.
GRANT UPDATE (result) ON perlica.outcomes TO perlica_member;
GRANT UPDATE (question) ON perlica.questions TO perlica_member;
GRANT UPDATE (text) ON perlica.answers TO perlica_member;
GRANT UPDATE (payload) ON perlica.events TO perlica_member;
GRANT DELETE ON perlica.payloads TO perlica_member;
GRANT INSERT, UPDATE ON perlica.generations TO perlica_admin;
GRANT INSERT (name, version, key, rights, gone, login, signer, signature) ON perlica.members TO perlica_admin; -- the server sets the column made
GRANT DELETE ON perlica.requests TO perlica_admin;

-- Present members can read all tables. A machine that joins can read only the tables of the first loop.
DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['team', 'generations', 'requests', 'members', 'logins']
	LOOP
		EXECUTE format('CREATE POLICY read ON perlica.%I FOR SELECT USING (true)', t);
	END LOOP;
	FOREACH t IN ARRAY ARRAY['workers', 'inputs', 'payloads', 'lanes', 'queue', 'claims', 'outcomes', 'closings', 'questions',
		'answers', 'cancels', 'logs', 'events', 'checkpoints', 'cosignatures']
	LOOP
		EXECUTE format('CREATE POLICY read ON perlica.%I FOR SELECT USING (EXISTS (SELECT FROM perlica.names()))', t);
	END LOOP;
	FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'perlica'::regnamespace AND relkind = 'r' AND relname <> 'schema'
	LOOP
		EXECUTE format('ALTER TABLE perlica.%I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE perlica.%I FORCE ROW LEVEL SECURITY', t);
	END LOOP;
END $$;

-- In the policies, perlica.names() stands in a FROM clause, so the server calls it once a statement and not once a row.
-- LIMIT 1 makes the server look up a row by its key, whatever size it expects of the table.

CREATE POLICY found ON perlica.team FOR INSERT WITH CHECK (true); -- only the owner of the schema has the grant

CREATE POLICY kept ON perlica.logins FOR INSERT WITH CHECK (true); -- only the owner of the schema has the grants
CREATE POLICY gone ON perlica.logins FOR DELETE USING (true);

-- An empty name is allowed only while the team has no members, when the team is founded.
CREATE POLICY begin ON perlica.generations FOR INSERT TO perlica_admin WITH CHECK (
	by IN (SELECT n FROM perlica.names() n) OR by = '' AND NOT EXISTS (SELECT FROM perlica.members));
CREATE POLICY finish ON perlica.generations FOR UPDATE TO perlica_admin
	USING (EXISTS (SELECT FROM perlica.names())) WITH CHECK (EXISTS (SELECT FROM perlica.names()));
CREATE POLICY hold ON perlica.generations FOR UPDATE TO perlica_member
	USING (EXISTS (SELECT FROM perlica.names())) WITH CHECK (false);

CREATE POLICY ask ON perlica.requests FOR INSERT WITH CHECK (login = current_user);
CREATE POLICY confirmed ON perlica.requests FOR DELETE TO perlica_admin USING (EXISTS (SELECT FROM perlica.names()));

CREATE POLICY signed ON perlica.members FOR INSERT TO perlica_admin WITH CHECK (
	perlica.may_sign(signer) AND version = perlica.next_version(name));

CREATE POLICY own ON perlica.workers FOR INSERT WITH CHECK (name IN (SELECT n FROM perlica.names() n));
CREATE POLICY heard ON perlica.workers FOR UPDATE
	USING (name IN (SELECT n FROM perlica.names() n)) WITH CHECK (name IN (SELECT n FROM perlica.names() n));

CREATE POLICY own ON perlica.inputs FOR INSERT WITH CHECK (sender IN (SELECT n FROM perlica.names() n));

-- Only the sender of an input may insert its payload and its row in the queue. The row must have the generation and the
-- sender of the input.
CREATE POLICY pieces ON perlica.payloads FOR INSERT WITH CHECK (
	(SELECT i.sender FROM perlica.inputs i WHERE i.id = payloads.input LIMIT 1) IN (SELECT n FROM perlica.names() n));
CREATE POLICY own_pruned ON perlica.payloads FOR DELETE USING (
	EXISTS (SELECT FROM perlica.claims c WHERE c.input = payloads.input AND perlica.mine(c.worker)));
CREATE POLICY own ON perlica.queue FOR INSERT WITH CHECK (
	sender IN (SELECT n FROM perlica.names() n)
	AND (SELECT i.generation = queue.generation AND i.sender = queue.sender FROM perlica.inputs i WHERE i.id = queue.input LIMIT 1));
-- Every member may remove rows from the queue and make them ready, but not make them unready. This gives no right to an
-- input: the policy of claims decides about it.
CREATE POLICY taken ON perlica.queue FOR DELETE USING (EXISTS (SELECT FROM perlica.names()));
CREATE POLICY ripen ON perlica.queue FOR UPDATE
	USING (EXISTS (SELECT FROM perlica.names())) WITH CHECK (ready AND EXISTS (SELECT FROM perlica.names()));

-- The name of a lane must be built from its other columns, so that no two lanes have the same name.
CREATE POLICY lanes ON perlica.lanes FOR INSERT WITH CHECK (
	EXISTS (SELECT FROM perlica.names())
	AND lane = concat_ws(E'\n', project, provider, array_to_string(labels, ',', ''), nullif(worker, ''))
	AND coalesce(array_ndims(labels), 1) = 1 AND NOT labels && ARRAY[''] AND array_position(labels, NULL) IS NULL
	AND project || provider || worker || array_to_string(labels, '') !~ '[\n,]');

-- This policy repeats the conditions of the claim statement in Perlica, so that a worker cannot claim other inputs with
-- its own SQL.
CREATE POLICY own ON perlica.claims FOR INSERT WITH CHECK (
	worker IN (SELECT n FROM perlica.names() n)
	AND (SELECT g.ended IS NULL AND g.name = claims.generation AND coalesce(i.not_before <= now(), true) AND i.worker IN ('', claims.worker)
	            AND NOT EXISTS (SELECT FROM perlica.closings s WHERE s.input = i.id AND s.kind <> 'resolved')
	     FROM perlica.inputs i
	     JOIN perlica.generations g ON g.name = i.generation
	     WHERE i.id = claims.input
	     LIMIT 1));
-- The grants let a role change only columns that do not name the owner of the row. So the new row needs no check here
-- and in outcomes.
CREATE POLICY own_reported ON perlica.claims FOR UPDATE USING (worker IN (SELECT n FROM perlica.names() n)) WITH CHECK (true);

CREATE POLICY own ON perlica.outcomes FOR INSERT WITH CHECK (
	worker IN (SELECT n FROM perlica.names() n)
	AND (SELECT c.worker = outcomes.worker FROM perlica.claims c WHERE c.input = outcomes.input LIMIT 1));
CREATE POLICY own_pruned ON perlica.outcomes FOR UPDATE USING (worker IN (SELECT n FROM perlica.names() n)) WITH CHECK (true);

-- A claimed input cannot be withdrawn. Only an admin may close inputs as adopted, and only inputs of an ended
-- generation.
CREATE POLICY own ON perlica.closings FOR INSERT WITH CHECK (
	by IN (SELECT n FROM perlica.names() n)
	AND CASE kind
	    WHEN 'withdrawn' THEN NOT EXISTS (SELECT FROM perlica.claims k WHERE k.input = closings.input)
	    WHEN 'adopted' THEN pg_has_role(current_user, 'perlica_admin', 'usage')
	         AND (SELECT g.ended IS NOT NULL FROM perlica.inputs i JOIN perlica.generations g ON g.name = i.generation WHERE i.id = closings.input LIMIT 1)
	    ELSE true END);
CREATE POLICY own_again ON perlica.closings FOR UPDATE
	USING (kind = 'resolved' AND by IN (SELECT n FROM perlica.names() n)) WITH CHECK (kind = 'resolved' AND by IN (SELECT n FROM perlica.names() n));

-- A worker may insert questions only about inputs that it has claimed.
CREATE POLICY own ON perlica.questions FOR INSERT WITH CHECK (
	perlica.mine(worker) AND EXISTS (SELECT FROM perlica.claims c WHERE c.input = questions.input AND c.worker = questions.worker));
CREATE POLICY own_closed ON perlica.questions FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker));

CREATE POLICY own ON perlica.answers FOR INSERT WITH CHECK (perlica.mine(member));
CREATE POLICY judged ON perlica.answers FOR UPDATE USING (EXISTS (
	SELECT FROM perlica.questions q WHERE q.id = answers.question AND perlica.mine(q.worker))) WITH CHECK (true);

CREATE POLICY own ON perlica.cancels FOR INSERT WITH CHECK (perlica.mine(member));
CREATE POLICY own_again ON perlica.cancels FOR UPDATE
	USING (member IN (SELECT n FROM perlica.names() n)) WITH CHECK (member IN (SELECT n FROM perlica.names() n));

CREATE POLICY own ON perlica.logs FOR INSERT WITH CHECK (perlica.mine(worker));
CREATE POLICY stopped ON perlica.logs FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker) AND forked IS NOT NULL);

CREATE POLICY own ON perlica.events FOR INSERT WITH CHECK (
	worker IN (SELECT l.worker FROM perlica.logs l WHERE l.forked IS NULL AND perlica.mine(l.worker)));
CREATE POLICY pruned ON perlica.events FOR UPDATE
	USING (worker IN (SELECT l.worker FROM perlica.logs l WHERE perlica.mine(l.worker)))
	WITH CHECK (payload IS NULL);
CREATE POLICY own ON perlica.checkpoints FOR INSERT WITH CHECK (
	worker IN (SELECT l.worker FROM perlica.logs l WHERE l.forked IS NULL AND perlica.mine(l.worker)));
CREATE POLICY own ON perlica.cosignatures FOR INSERT WITH CHECK (perlica.mine(keeper));
