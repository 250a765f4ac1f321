-- A role is held to what its member may while it is one. The team's own name, its generations, members and requests can be
-- read by who asks to join, too.

-- names are the members who log in as the present role.
CREATE FUNCTION perlica.names() RETURNS SETOF text LANGUAGE sql STABLE AS $$
	SELECT m.name
	FROM (SELECT DISTINCT ON (name) name, gone, login
	      FROM perlica.members
	      ORDER BY name, version DESC) m
	WHERE NOT m.gone AND m.login = current_user
$$;

-- The sub-selects of these policies do not depend on the row: they are computed once a statement.
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

-- Nobody is a member when the team is founded.
ALTER POLICY begin ON perlica.generations WITH CHECK (
	by IN (SELECT perlica.names()) OR by = '' AND NOT EXISTS (SELECT FROM perlica.members));
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
ALTER POLICY pieces ON perlica.payloads WITH CHECK (EXISTS (
	SELECT FROM perlica.inputs i WHERE i.id = payloads.input AND i.sender IN (SELECT perlica.names())));
ALTER POLICY own ON perlica.queue WITH CHECK (EXISTS (
	SELECT FROM perlica.inputs i
	WHERE i.id = queue.input AND i.generation = queue.generation AND i.sender = queue.sender AND i.sender IN (SELECT perlica.names())));
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
