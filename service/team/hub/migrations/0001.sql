-- One row: the team of this database.
CREATE TABLE perlica.team (
	one   boolean PRIMARY KEY DEFAULT true CHECK (one),
	id    text NOT NULL,
	name  text NOT NULL,
	admin text NOT NULL -- the verifier key of the first admin, which all other keys follow from
);

-- A generation is the time in which this server forgot nothing. At most one has not ended.
CREATE TABLE perlica.generations (
	name     text PRIMARY KEY,
	system   bigint NOT NULL,
	timeline text NOT NULL,
	begun    timestamptz NOT NULL DEFAULT now(),
	ended    timestamptz,
	by       text NOT NULL
);
CREATE UNIQUE INDEX generations_one_current ON perlica.generations ((true)) WHERE ended IS NULL;

-- Who asks to join; an admin's signature makes a member of it.
CREATE TABLE perlica.requests (
	name  text PRIMARY KEY,
	key   text NOT NULL,
	login name NOT NULL,
	made  timestamptz NOT NULL DEFAULT now()
);

-- Joins and leaves, each signed by an admin. The newest statement about a name counts.
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

-- mine reports whether a name is that of a member who logs in as the present role.
CREATE FUNCTION perlica.mine(who text) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT coalesce((SELECT NOT m.gone AND m.login = current_user
	                 FROM perlica.members m
	                 WHERE m.name = who
	                 ORDER BY m.version DESC
	                 LIMIT 1), false)
$$;

CREATE TABLE perlica.workers (
	name      text PRIMARY KEY,
	origin    text NOT NULL, -- of its log
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
	permissions text NOT NULL,
	priority    integer NOT NULL,
	not_before  timestamptz,
	replaces    text NOT NULL, -- the id of an input that this one is to be done instead of
	attachments jsonb NOT NULL,
	signature   bytea NOT NULL,
	submitted   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX inputs_newest ON perlica.inputs (submitted);

-- Text (part 0) and attachments (from 1 on), in pieces.
CREATE TABLE perlica.payloads (
	input text NOT NULL REFERENCES perlica.inputs,
	part  integer NOT NULL,
	piece integer NOT NULL,
	bytes bytea NOT NULL,
	PRIMARY KEY (input, part, piece)
);
ALTER TABLE perlica.payloads ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A lane is what inputs of one kind want of a worker. There are few.
CREATE TABLE perlica.lanes (
	lane     text PRIMARY KEY,
	project  text NOT NULL,
	provider text NOT NULL,
	labels   text[] NOT NULL
);

-- A row for each input that is in no claim. Ready rows of a lane are found in the order in which they
-- are taken, however many others there are.
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

-- The one claim that an input can ever have.
CREATE TABLE perlica.claims (
	input      text PRIMARY KEY REFERENCES perlica.inputs,
	worker     text NOT NULL,
	generation text NOT NULL,
	position   bigint NOT NULL, -- of the write-ahead log
	at         timestamptz NOT NULL DEFAULT now(),
	reported   boolean NOT NULL DEFAULT false -- there is an outcome
);
CREATE INDEX claims_open ON perlica.claims (worker) WHERE NOT reported;

-- What the owner's log says became of an input.
CREATE TABLE perlica.outcomes (
	input   text PRIMARY KEY REFERENCES perlica.claims,
	worker  text NOT NULL,
	outcome text NOT NULL, -- responded, provider_error, outcome_unknown, refused
	result  jsonb NOT NULL,
	at      timestamptz NOT NULL DEFAULT now()
);

-- Closed without an outcome: withdrawn from the queue, closed by an adoption, or by a person's opinion.
CREATE TABLE perlica.closings (
	input     text NOT NULL REFERENCES perlica.inputs,
	kind      text NOT NULL CHECK (kind IN ('withdrawn', 'adopted', 'resolved')),
	by        text NOT NULL,
	note      text NOT NULL,
	signature bytea, -- of resolved
	at        timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (input, kind)
);

CREATE TABLE perlica.questions (
	id       text PRIMARY KEY,
	input    text NOT NULL REFERENCES perlica.claims,
	worker   text NOT NULL,
	question jsonb NOT NULL,
	asked    timestamptz NOT NULL DEFAULT now(),
	closed   jsonb -- how it ended, by the worker's log
);
CREATE INDEX questions_open ON perlica.questions (worker) WHERE closed IS NULL;

-- What members propose: answers to questions, and stops of inputs. The worker's log decides.
CREATE TABLE perlica.answers (
	question  text NOT NULL REFERENCES perlica.questions,
	member    text NOT NULL,
	option    text NOT NULL,
	text      text NOT NULL,
	signature bytea NOT NULL,
	verdict   text, -- what the worker says of it; empty: it counts
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

-- Rights. Who has the password of a role can insert what that role's member may, and nothing in another's name.
GRANT USAGE ON SCHEMA perlica TO perlica_member;
GRANT SELECT ON ALL TABLES IN SCHEMA perlica TO perlica_member;
GRANT INSERT ON perlica.requests, perlica.workers, perlica.inputs, perlica.payloads, perlica.lanes, perlica.queue, perlica.claims,
	perlica.outcomes, perlica.closings, perlica.questions, perlica.answers, perlica.cancels TO perlica_member;
GRANT DELETE ON perlica.queue TO perlica_member;
GRANT UPDATE (ready) ON perlica.queue TO perlica_member;
GRANT UPDATE (reported) ON perlica.claims TO perlica_member;
GRANT UPDATE (closed) ON perlica.questions TO perlica_member;
GRANT UPDATE (verdict) ON perlica.answers TO perlica_member;
GRANT UPDATE (origin, projects, providers, labels, slots, heard) ON perlica.workers TO perlica_member;
GRANT UPDATE (ended) ON perlica.generations TO perlica_member; -- FOR SHARE needs it; the policy lets none be changed
GRANT INSERT, UPDATE ON perlica.generations TO perlica_admin;
GRANT INSERT ON perlica.members TO perlica_admin;
GRANT DELETE ON perlica.requests TO perlica_admin;

DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['team', 'generations', 'requests', 'members', 'workers', 'inputs', 'payloads', 'lanes', 'queue', 'claims',
		'outcomes', 'closings', 'questions', 'answers', 'cancels']
	LOOP
		EXECUTE format('ALTER TABLE perlica.%I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE perlica.%I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY read ON perlica.%I FOR SELECT USING (true)', t);
	END LOOP;
END $$;
CREATE POLICY found ON perlica.team FOR INSERT WITH CHECK (true); -- the owner alone is granted it
CREATE POLICY begin ON perlica.generations FOR INSERT TO perlica_admin WITH CHECK (true);
CREATE POLICY finish ON perlica.generations FOR UPDATE TO perlica_admin USING (true) WITH CHECK (true);
CREATE POLICY hold ON perlica.generations FOR UPDATE TO perlica_member USING (true) WITH CHECK (false);
CREATE POLICY ask ON perlica.requests FOR INSERT WITH CHECK (login = current_user);
CREATE POLICY confirmed ON perlica.requests FOR DELETE TO perlica_admin USING (true);
CREATE POLICY signed ON perlica.members FOR INSERT TO perlica_admin WITH CHECK (true);
CREATE POLICY own ON perlica.workers FOR INSERT WITH CHECK (perlica.mine(name));
CREATE POLICY heard ON perlica.workers FOR UPDATE USING (perlica.mine(name)) WITH CHECK (perlica.mine(name));
CREATE POLICY own ON perlica.inputs FOR INSERT WITH CHECK (perlica.mine(sender));
CREATE POLICY pieces ON perlica.payloads FOR INSERT WITH CHECK (true); -- held against the digest that its sender signed
CREATE POLICY lanes ON perlica.lanes FOR INSERT WITH CHECK (true);
CREATE POLICY own ON perlica.queue FOR INSERT WITH CHECK (perlica.mine(sender));
CREATE POLICY taken ON perlica.queue FOR DELETE USING (true);
CREATE POLICY ripen ON perlica.queue FOR UPDATE USING (true) WITH CHECK (true);
CREATE POLICY own ON perlica.claims FOR INSERT WITH CHECK (perlica.mine(worker));
CREATE POLICY own_reported ON perlica.claims FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker));
CREATE POLICY own ON perlica.outcomes FOR INSERT WITH CHECK (
	perlica.mine(worker) AND EXISTS (SELECT FROM perlica.claims c WHERE c.input = outcomes.input AND c.worker = outcomes.worker));
CREATE POLICY own ON perlica.closings FOR INSERT WITH CHECK (perlica.mine(by));
CREATE POLICY own ON perlica.questions FOR INSERT WITH CHECK (perlica.mine(worker));
CREATE POLICY own_closed ON perlica.questions FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker));
CREATE POLICY own ON perlica.answers FOR INSERT WITH CHECK (perlica.mine(member));
CREATE POLICY judged ON perlica.answers FOR UPDATE USING (EXISTS (
	SELECT FROM perlica.questions q WHERE q.id = answers.question AND perlica.mine(q.worker))) WITH CHECK (true);
CREATE POLICY own ON perlica.cancels FOR INSERT WITH CHECK (perlica.mine(member));
