LOCK TABLE perlica.inputs, perlica.claims IN ACCESS EXCLUSIVE MODE; -- in the order in which others read them

-- Each policy asks who is a member now: of the newest statement about each name that follows from the signed ones, and is kept
-- beside them, so that it is one row to read. Nobody but the trigger writes it.
CREATE TABLE perlica.logins (
	login name NOT NULL, -- the role
	name  text NOT NULL UNIQUE, -- of a member who has not left
	PRIMARY KEY (login, name)
);
ALTER TABLE perlica.logins ENABLE ROW LEVEL SECURITY;
ALTER TABLE perlica.logins FORCE ROW LEVEL SECURITY;
GRANT SELECT ON perlica.logins TO perlica_member;
CREATE POLICY read ON perlica.logins FOR SELECT USING (true);
CREATE POLICY kept ON perlica.logins FOR INSERT WITH CHECK (true); -- the owner alone may
CREATE POLICY gone ON perlica.logins FOR DELETE USING (true);

-- It runs with the rights of the schema's owner, and so for this table alone, and for nobody who could have it run for another one.
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
INSERT INTO perlica.logins (login, name)
SELECT m.login, m.name
FROM perlica.members m
WHERE NOT m.gone AND NOT EXISTS (SELECT FROM perlica.members n WHERE n.name = m.name AND n.version > m.version);

-- What these are made of is looked up here and now, not by the search_path of who asks: a role could put operators of its own there.
CREATE OR REPLACE FUNCTION perlica.names() RETURNS SETOF text LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT l.name FROM perlica.logins l WHERE l.login = current_user;
END;
CREATE OR REPLACE FUNCTION perlica.mine(who text) RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT EXISTS (SELECT FROM perlica.logins l WHERE l.login = current_user AND l.name = who);
END;
CREATE OR REPLACE FUNCTION perlica.may_sign(signer text) RETURNS boolean LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT CASE signer
	       WHEN '' THEN coalesce((SELECT m.login = current_user FROM perlica.members m WHERE m.signer = '' ORDER BY m.made, m.version LIMIT 1), true)
	       ELSE perlica.mine(signer) END;
END;

-- Statements about a name follow one after the other: one that was put far ahead, signed or not, would stand above all that come.
CREATE FUNCTION perlica.next_version(who text) RETURNS integer LANGUAGE sql STABLE
BEGIN ATOMIC
	SELECT 1 + coalesce(max(m.version), 0) FROM perlica.members m WHERE m.name = who;
END;
ALTER POLICY signed ON perlica.members WITH CHECK (perlica.may_sign(signer) AND version = perlica.next_version(name));

-- A lane's name says what is in it: nothing in it looks like two.
ALTER POLICY lanes ON perlica.lanes WITH CHECK (
	EXISTS (SELECT FROM perlica.names())
	AND lane = concat_ws(E'\n', project, provider, array_to_string(labels, ',', ''), nullif(worker, ''))
	AND coalesce(array_ndims(labels), 1) = 1 AND NOT labels && ARRAY[''] AND array_position(labels, NULL) IS NULL
	AND project || provider || worker || array_to_string(labels, '') !~ '[\n,]');
ALTER TABLE perlica.lanes NO FORCE ROW LEVEL SECURITY; -- of the owner, who migrates
ALTER TABLE perlica.queue NO FORCE ROW LEVEL SECURITY;
ALTER TABLE perlica.inputs NO FORCE ROW LEVEL SECURITY;
UPDATE perlica.queue q
SET lane = concat_ws(E'\n', i.project, i.provider, array_to_string(i.labels, ','), nullif(i.worker, ''))
FROM perlica.inputs i
WHERE i.id = q.input AND q.lane <> concat_ws(E'\n', i.project, i.provider, array_to_string(i.labels, ','), nullif(i.worker, ''));
DELETE FROM perlica.lanes;
INSERT INTO perlica.lanes (lane, project, provider, labels, worker)
SELECT DISTINCT q.lane, i.project, i.provider, i.labels, i.worker
FROM perlica.queue q
JOIN perlica.inputs i ON i.id = q.input
ON CONFLICT DO NOTHING;
ALTER TABLE perlica.lanes FORCE ROW LEVEL SECURITY;
ALTER TABLE perlica.queue FORCE ROW LEVEL SECURITY;
ALTER TABLE perlica.inputs FORCE ROW LEVEL SECURITY;

-- Who writes to the queue makes an input ready, and not the opposite.
ALTER POLICY ripen ON perlica.queue WITH CHECK (ready AND EXISTS (SELECT FROM perlica.names()));

-- A worker's role claims nothing that a claim of its program would not take.
ALTER POLICY own ON perlica.claims WITH CHECK (
	worker IN (SELECT n FROM perlica.names() n)
	AND (SELECT g.ended IS NULL AND g.name = claims.generation AND coalesce(i.not_before <= now(), true) AND i.worker IN ('', claims.worker)
	            AND NOT EXISTS (SELECT FROM perlica.closings s WHERE s.input = i.id AND s.kind <> 'resolved')
	     FROM perlica.inputs i
	     JOIN perlica.generations g ON g.name = i.generation
	     WHERE i.id = claims.input
	     LIMIT 1));

-- What is claimed cannot be withdrawn, and an adoption, which is an admin's, closes what is of a generation that has ended. Each
-- member has an opinion of its own: one that is not signed stands in nobody else's way, and is replaced by its member's.
ALTER TABLE perlica.closings
	DROP CONSTRAINT closings_pkey,
	ADD PRIMARY KEY (input, kind, by);
ALTER POLICY own ON perlica.closings WITH CHECK (
	by IN (SELECT n FROM perlica.names() n)
	AND CASE kind
	    WHEN 'withdrawn' THEN NOT EXISTS (SELECT FROM perlica.claims k WHERE k.input = closings.input)
	    WHEN 'adopted' THEN pg_has_role(current_user, 'perlica_admin', 'usage')
	         AND (SELECT g.ended IS NOT NULL FROM perlica.inputs i JOIN perlica.generations g ON g.name = i.generation WHERE i.id = closings.input LIMIT 1)
	    ELSE true END);
GRANT UPDATE (note, signature, at) ON perlica.closings TO perlica_member;
DROP POLICY IF EXISTS own_again ON perlica.closings; -- as in the one below: there was a migration 6 that had them
CREATE POLICY own_again ON perlica.closings FOR UPDATE
	USING (kind = 'resolved' AND by IN (SELECT n FROM perlica.names() n)) WITH CHECK (kind = 'resolved' AND by IN (SELECT n FROM perlica.names() n));
GRANT UPDATE (signature) ON perlica.cancels TO perlica_member; -- the same of a stop
DROP POLICY IF EXISTS own_again ON perlica.cancels;
CREATE POLICY own_again ON perlica.cancels FOR UPDATE
	USING (member IN (SELECT n FROM perlica.names() n)) WITH CHECK (member IN (SELECT n FROM perlica.names() n));

-- Workers report once more, signed, what they reported unsigned: it is on their logs.
ALTER TABLE perlica.claims NO FORCE ROW LEVEL SECURITY; -- of the owner, who migrates
ALTER TABLE perlica.outcomes NO FORCE ROW LEVEL SECURITY;
UPDATE perlica.claims k
SET reported = false
WHERE k.reported AND EXISTS (SELECT FROM perlica.outcomes o WHERE o.input = k.input AND o.signature IS NULL);
ALTER TABLE perlica.claims FORCE ROW LEVEL SECURITY;
ALTER TABLE perlica.outcomes FORCE ROW LEVEL SECURITY;

-- The columns that may change do not say whose a row is: to look again at the new row finds the same.
ALTER POLICY own_reported ON perlica.claims WITH CHECK (true);
ALTER POLICY own_pruned ON perlica.outcomes WITH CHECK (true);

-- That a claim's input is there its policy has looked, and inputs are never deleted: the key would write to the input's row.
ALTER TABLE perlica.claims DROP CONSTRAINT claims_input_fkey;
