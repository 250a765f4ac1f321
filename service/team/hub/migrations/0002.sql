-- The log of each worker's work for the team: one name, one log.
CREATE TABLE perlica.logs (
	worker text PRIMARY KEY,
	origin text NOT NULL UNIQUE, -- the log's name in its checkpoints
	forked bigint, -- an event that the worker's log and the copy have in two versions: the worker is stopped
	made   timestamptz NOT NULL DEFAULT now()
);

-- A copy of that log, behind the worker's own disk. The leaf is the hash of the header, which has that of the payload.
CREATE TABLE perlica.events (
	worker  text NOT NULL,
	seq     bigint NOT NULL,
	leaf    bytea NOT NULL,
	header  bytea NOT NULL,
	payload bytea, -- null: the worker removed it from its log
	PRIMARY KEY (worker, seq)
);

-- The worker's signed checkpoints of its log, and under them the signatures of keepers, who verified the copy.
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

GRANT SELECT, INSERT ON perlica.logs, perlica.events, perlica.checkpoints, perlica.cosignatures TO perlica_member;
GRANT UPDATE (forked) ON perlica.logs TO perlica_member;
GRANT UPDATE (payload) ON perlica.events TO perlica_member;
GRANT UPDATE (result) ON perlica.outcomes TO perlica_member; -- what was pruned is taken out
GRANT DELETE ON perlica.payloads TO perlica_member;          -- likewise

DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['logs', 'events', 'checkpoints', 'cosignatures']
	LOOP
		EXECUTE format('ALTER TABLE perlica.%I ENABLE ROW LEVEL SECURITY', t);
		EXECUTE format('ALTER TABLE perlica.%I FORCE ROW LEVEL SECURITY', t);
		EXECUTE format('CREATE POLICY read ON perlica.%I FOR SELECT USING (true)', t);
	END LOOP;
END $$;
CREATE POLICY own ON perlica.logs FOR INSERT WITH CHECK (perlica.mine(worker));
CREATE POLICY stopped ON perlica.logs FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker) AND forked IS NOT NULL);
-- The sub-selects do not depend on the row: they are computed once a statement.
CREATE POLICY own ON perlica.events FOR INSERT WITH CHECK (
	worker IN (SELECT l.worker FROM perlica.logs l WHERE l.forked IS NULL AND perlica.mine(l.worker)));
CREATE POLICY pruned ON perlica.events FOR UPDATE
	USING (worker IN (SELECT l.worker FROM perlica.logs l WHERE perlica.mine(l.worker)))
	WITH CHECK (payload IS NULL);
CREATE POLICY own ON perlica.checkpoints FOR INSERT WITH CHECK (
	worker IN (SELECT l.worker FROM perlica.logs l WHERE l.forked IS NULL AND perlica.mine(l.worker)));
CREATE POLICY own ON perlica.cosignatures FOR INSERT WITH CHECK (perlica.mine(keeper));
CREATE POLICY own_pruned ON perlica.outcomes FOR UPDATE USING (perlica.mine(worker)) WITH CHECK (perlica.mine(worker));
CREATE POLICY own_pruned ON perlica.payloads FOR DELETE USING (
	EXISTS (SELECT FROM perlica.claims c WHERE c.input = payloads.input AND perlica.mine(c.worker)));
