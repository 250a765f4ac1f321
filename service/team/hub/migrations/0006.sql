-- A role is held to what its member may while it is one. The team's own name, its generations, members and requests can be
-- read by who asks to join, too.

-- names are the members who log in as the present role. Nothing is sorted: see Hub.connect.
CREATE FUNCTION perlica.names() RETURNS SETOF text LANGUAGE sql STABLE AS $$
	SELECT m.name
	FROM perlica.members m
	WHERE NOT m.gone AND m.login = current_user
	  AND NOT EXISTS (SELECT FROM perlica.members n WHERE n.name = m.name AND n.version > m.version)
$$;

-- The sub-selects of names do not depend on the row: they are computed once a statement, and the function is in FROM, where the
-- server puts its text in its place. A LIMIT has a row looked up by its key, however large the server believes the table to be.
DO $$
DECLARE
	t text;
BEGIN
	FOREACH t IN ARRAY ARRAY['workers', 'inputs', 'payloads', 'lanes', 'queue', 'claims', 'outcomes', 'closings', 'questions',
		'answers', 'cancels', 'logs', 'events', 'checkpoints', 'cosignatures']
	LOOP
		EXECUTE format('ALTER POLICY read ON perlica.%I USING (EXISTS (SELECT FROM perlica.names()))', t);
	END LOOP;
END $$;

ALTER POLICY own ON perlica.workers WITH CHECK (name IN (SELECT n FROM perlica.names() n));
ALTER POLICY heard ON perlica.workers USING (name IN (SELECT n FROM perlica.names() n)) WITH CHECK (name IN (SELECT n FROM perlica.names() n));
ALTER POLICY own ON perlica.inputs WITH CHECK (sender IN (SELECT n FROM perlica.names() n));
ALTER POLICY own ON perlica.claims WITH CHECK (worker IN (SELECT n FROM perlica.names() n));
ALTER POLICY own_reported ON perlica.claims USING (worker IN (SELECT n FROM perlica.names() n)) WITH CHECK (worker IN (SELECT n FROM perlica.names() n));
ALTER POLICY own ON perlica.outcomes WITH CHECK (
	worker IN (SELECT n FROM perlica.names() n)
	AND (SELECT c.worker = outcomes.worker FROM perlica.claims c WHERE c.input = outcomes.input LIMIT 1));
ALTER POLICY own_pruned ON perlica.outcomes USING (worker IN (SELECT n FROM perlica.names() n)) WITH CHECK (worker IN (SELECT n FROM perlica.names() n));

-- Nobody is a member when the team is founded.
ALTER POLICY begin ON perlica.generations WITH CHECK (
	by IN (SELECT n FROM perlica.names() n) OR by = '' AND NOT EXISTS (SELECT FROM perlica.members));
ALTER POLICY finish ON perlica.generations USING (EXISTS (SELECT FROM perlica.names())) WITH CHECK (EXISTS (SELECT FROM perlica.names()));
ALTER POLICY hold ON perlica.generations USING (EXISTS (SELECT FROM perlica.names()));
ALTER POLICY confirmed ON perlica.requests USING (EXISTS (SELECT FROM perlica.names()));

-- Who signs a statement about a member writes it there, and when that was is the server's word. The first admin's
-- own key, whose statements have no signer, is that of the role which used it first.
CREATE FUNCTION perlica.may_sign(signer text) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT CASE signer
	       WHEN '' THEN coalesce((SELECT m.login = current_user FROM perlica.members m WHERE m.signer = '' ORDER BY m.made, m.version LIMIT 1), true)
	       ELSE perlica.mine(signer) END
$$;
REVOKE INSERT ON perlica.members FROM perlica_admin;
GRANT INSERT (name, version, key, rights, gone, login, signer, signature) ON perlica.members TO perlica_admin;
ALTER POLICY signed ON perlica.members WITH CHECK (perlica.may_sign(signer));

-- An input's payload, and its place in the queue, are its sender's to put there, and say what the input says.
ALTER POLICY pieces ON perlica.payloads WITH CHECK (
	(SELECT i.sender FROM perlica.inputs i WHERE i.id = payloads.input LIMIT 1) IN (SELECT n FROM perlica.names() n));
ALTER POLICY own ON perlica.queue WITH CHECK (
	sender IN (SELECT n FROM perlica.names() n)
	AND (SELECT i.generation = queue.generation AND i.sender = queue.sender FROM perlica.inputs i WHERE i.id = queue.input LIMIT 1));
ALTER POLICY lanes ON perlica.lanes WITH CHECK (
	EXISTS (SELECT FROM perlica.names())
	AND lane = concat_ws(E'\n', project, provider, array_to_string(labels, ','), nullif(worker, '')));

-- The queue is everybody's to take from and to make ready: what may be taken is for the claim to judge.
ALTER POLICY taken ON perlica.queue USING (EXISTS (SELECT FROM perlica.names()));
ALTER POLICY ripen ON perlica.queue USING (EXISTS (SELECT FROM perlica.names())) WITH CHECK (EXISTS (SELECT FROM perlica.names()));

-- An adoption is an admin's.
ALTER POLICY own ON perlica.closings WITH CHECK (
	perlica.mine(by) AND (kind <> 'adopted' OR pg_has_role(current_user, 'perlica_admin', 'usage')));

-- What became of an input its owner signs: the digest of the result, which stays when the result is pruned, and the outcome. The
-- result stands there byte for byte.
ALTER TABLE perlica.outcomes
	ALTER COLUMN result TYPE json USING result::json,
	ADD digest    text NOT NULL DEFAULT '',
	ADD signature bytea;
GRANT UPDATE (outcome, digest, signature) ON perlica.outcomes TO perlica_member;
