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

CREATE FUNCTION perlica.keep_logins() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
	DELETE FROM perlica.logins WHERE name = coalesce(NEW.name, OLD.name);
	INSERT INTO perlica.logins (login, name)
	SELECT m.login, m.name
	FROM (SELECT * FROM perlica.members WHERE name = coalesce(NEW.name, OLD.name) ORDER BY version DESC LIMIT 1) m
	WHERE NOT m.gone;
	RETURN NULL;
END $$;
CREATE TRIGGER keep_logins AFTER INSERT OR UPDATE OR DELETE ON perlica.members FOR EACH ROW EXECUTE FUNCTION perlica.keep_logins();
INSERT INTO perlica.logins (login, name)
SELECT m.login, m.name
FROM perlica.members m
WHERE NOT m.gone AND NOT EXISTS (SELECT FROM perlica.members n WHERE n.name = m.name AND n.version > m.version);

CREATE OR REPLACE FUNCTION perlica.names() RETURNS SETOF text LANGUAGE sql STABLE AS $$
	SELECT l.name FROM perlica.logins l WHERE l.login = current_user
$$;
CREATE OR REPLACE FUNCTION perlica.mine(who text) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM perlica.logins l WHERE l.login = current_user AND l.name = who)
$$;

-- The columns that may change do not say whose a row is: to look again at the new row finds the same.
ALTER POLICY own_reported ON perlica.claims WITH CHECK (true);
ALTER POLICY own_pruned ON perlica.outcomes WITH CHECK (true);

-- That a claim's input is there its policy has looked, and inputs are never deleted: the key would write to the input's row.
ALTER TABLE perlica.claims DROP CONSTRAINT claims_input_fkey;
