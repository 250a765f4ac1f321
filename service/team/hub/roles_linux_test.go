package hub

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestRoles checks that a member's password permits no row in another member's name.
func TestRoles(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	role := "bob_" + db
	s.SQL(t, db, "CREATE ROLE "+role+" LOGIN")
	bob := open(t, s.URL(role, db))
	if _, err := bob.Look(t.Context()); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("a role without rights: %v", err)
	}
	s.SQL(t, db, "GRANT perlica_member TO "+role)
	if err := bob.Ask(t.Context(), "bob", "bobs"); err != nil {
		t.Fatal(err)
	}
	mine := newInput("b", "x")
	mine.Sender = "bob"
	if _, err := bob.Submit(t.Context(), "g1", []Input{mine}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("before a confirmation: %v", err)
	}
	if err := bob.State(t.Context(), Member{Name: "bob", Version: 1, Login: role}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("confirmed by himself: %v", err)
	}
	asked, err := h.Requests(t.Context())
	if err != nil || len(asked) != 1 || asked[0].Login != role || asked[0].Key != "bobs" {
		t.Fatalf(`got %v, %v; want err == nil && len(asked) == 1 && asked[0].Login == %v && asked[0].Key == "bobs"`,
			asked, err, role)
	}
	if err := h.State(t.Context(), Member{Name: "bob", Version: 1, Key: "bobs", Rights: access.Rights{access.Ask},
		Login: role, Signer: "alice", Signature: []byte{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Submit(t.Context(), "g1", []Input{mine}); err != nil {
		t.Error(err)
	}
	submitted(t, h, newInput("a", "x"))
	other := Worker{Name: "alice", Projects: []string{"p"}, Providers: []string{}, Labels: []string{}}
	for what, err := range map[string]error{
		"a claim":     second(bob.Claim(t.Context(), other, 1, nil)),
		"an input":    second(bob.Submit(t.Context(), "g1", []Input{newInput("c", "x")})),
		"a pulse":     third(bob.Pulse(t.Context(), other)),
		"a wish":      bob.PutCancel(t.Context(), Cancel{Input: "a", Member: "alice", Signature: []byte{}}),
		"an opinion":  bob.Resolve(t.Context(), "a", "alice", "", []byte{}),
		"an adoption": second(bob.Adopt(t.Context(), "g2", "alice", true)),
	} {
		if !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s in another's name: %v", what, err)
		}
	}
	for _, sql := range []string{"UPDATE perlica.claims SET worker = 'bob'", "DELETE FROM perlica.claims",
		"UPDATE perlica.inputs SET digest = ''",
		"UPDATE perlica.outcomes SET worker = ''", "UPDATE perlica.members SET key = ''", "TRUNCATE perlica.claims"} {
		if _, err := s.Try(role, db, sql); err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
	if err := h.State(t.Context(), Member{Name: "bob", Version: 2, Key: "bobs", Gone: true, Rights: access.Rights{},
		Login: role, Signer: "alice", Signature: []byte{}}); err != nil {
		t.Fatal(err)
	}
	mine.ID = "b2"
	if _, err := bob.Submit(t.Context(), "g1", []Input{mine}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("by one who left: %v", err)
	}
}

// TestPassword checks the reach of a role's password. The password permits reading the member's rows. It cannot make a
// worker call an unwanted input, or call one too early or too late. Former members and strangers see and change
// nothing.
func TestPassword(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	role := map[string]string{}
	for _, name := range []string{"bob", "carol", "dave", "eve"} {
		role[name] = name + "_" + db
		s.SQL(t, db, "CREATE ROLE "+role[name]+" LOGIN IN ROLE perlica_member, perlica_admin")
		m := Member{Name: name, Version: 1, Key: name, Rights: access.Rights{access.Ask}, Login: role[name], Signer: "alice",
			Signature: []byte{}}
		if name != "eve" { // eve is never confirmed
			check(t, h.State(t.Context(), m))
		}
		if m.Version, m.Gone = 2, true; name == "dave" {
			check(t, h.State(t.Context(), m))
		}
	}
	running := newInput("running", "x")
	check(t, second(h.Submit(t.Context(), "g1", []Input{running})))
	if got := claimed(t, h, 1); len(got) != 1 || got[0] != "running" {
		t.Fatalf(`got %v; want len(got) == 1 && got[0] == "running"`, got)
	}
	list := []Input{newInput("later", "x"), newInput("gone", "x"), newInput("gpu", "x")}
	for i := range list {
		list[i].Sender = "bob"
	}
	list[0].NotBefore = time.Now().Add(time.Hour)
	list[2].Labels = []string{"gpu"}
	check(t, second(open(t, s.URL(role["bob"], db)).Submit(t.Context(), "g1", list)))
	check(t, second(h.Withdraw(t.Context(), "gone", "alice")))

	queued := func(sender, lane string) string {
		return "INSERT INTO perlica.queue (input, generation, sender, lane, priority, ready) VALUES ('gone', 'g1', '" +
			sender + "', " + lane + ", 0, true)"
	}
	claims := func(input string) string {
		return "INSERT INTO perlica.claims (input, worker, generation, position) VALUES ('" + input + "', 'carol', 'g1', 1)"
	}
	for _, sql := range []string{
		claims("gone"), claims("later"), "INSERT INTO perlica.closings VALUES ('running', 'withdrawn', 'carol', '')",
		"INSERT INTO perlica.closings VALUES ('later', 'adopted', 'carol', '')",
		queued("carol", `E'p\n\n'`), queued("bob", `E'p\n\n'`),
		`INSERT INTO perlica.lanes VALUES (E'p\n\ntpu', 'p', '', '{}', '')`,
		"INSERT INTO perlica.payloads VALUES ('later', 1, 0, 'x')",
		"INSERT INTO perlica.generations VALUES ('g9', 1, '1', now(), NULL, 'alice')",
		"INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature) VALUES ('alice', 9, '', " +
			"'{}', true, 'x', 'alice', '')",
		"INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature) VALUES ('alice', 9, '', " +
			"'{}', true, 'x', '', '')",
		"INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature, made) VALUES ('x', 9, " +
			"'', '{}', true, 'x', 'carol', '', now())",
		"INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature) VALUES ('carol', 9, " +
			"'k', '{}', false, current_user, 'carol', '')",
		"UPDATE perlica.queue SET ready = false WHERE input = 'gpu'; SELECT 1/(SELECT count(*) FROM perlica.queue WHERE " +
			"NOT ready AND input = 'gpu')",
		`INSERT INTO perlica.lanes VALUES (E'q\n\n', 'q', '', ARRAY[''], '')`,
		`INSERT INTO perlica.lanes VALUES (E'q\n\nbig', 'q', '', ARRAY['big', NULL], '')`,
		`INSERT INTO perlica.lanes VALUES (E'q\n\na,b', 'q', '', ARRAY['a,b'], '')`,
		`INSERT INTO perlica.lanes VALUES (E'q\n\n\nbob', 'q', '', ARRAY[E'\nbob'], '')`,
		`INSERT INTO perlica.lanes VALUES (E'q\n\n\nbob', E'q\n', '', ARRAY['bob'], '')`,
	} {
		for _, who := range []string{"carol", "dave", "eve"} {
			if _, err := s.Try(role[who], db, sql); err == nil {
				t.Errorf("%s may %s", who, sql)
			}
		}
	}
	for _, who := range []string{"dave", "eve"} {
		for _, sql := range []string{"DELETE FROM perlica.queue RETURNING 1",
			"UPDATE perlica.generations SET ended = now() RETURNING 1",
			"UPDATE perlica.queue SET ready = true RETURNING 1", "SELECT input FROM perlica.payloads",
			"SELECT id FROM perlica.inputs",
			"DELETE FROM perlica.requests RETURNING 1",
			"SELECT worker FROM perlica.events UNION SELECT origin FROM perlica.logs"} {
			if out, err := s.Try(role[who], db, sql); err != nil || out != "" {
				t.Errorf(`%s: got %s: %s, %v; want err == nil && out == ""`, who, sql, out, err)
			}
		}
	}
	// The same holds for every table, except the tables that a joining machine must read.
	if open := s.SQL(t, db,
		"SELECT tablename FROM pg_policies WHERE schemaname = 'perlica' AND policyname = 'read' AND qual = "+
			"'true' ORDER BY 1"); open != "generations\nlogins\nmembers\nrequests\nteam" {
		t.Errorf("anybody may read %q", open)
	}
	if bare := s.SQL(t, db,
		"SELECT relname FROM pg_class WHERE relnamespace = 'perlica'::regnamespace AND relkind = 'r' AND NOT "+
			"(relrowsecurity AND relforcerowsecurity)"); bare != "schema" {
		t.Errorf("without row security: %q", bare)
	}
	// These writes are allowed and have no effect.
	for who, sql := range map[string]string{"carol": "UPDATE perlica.queue SET ready = true",
		"bob": queued("bob", `E'p\n\n'`) +
			`; INSERT INTO perlica.queue (input, generation, sender, lane, priority, ready) SELECT id, generation, sender, E'p\n\n', 0, true FROM perlica.inputs WHERE id = 'gpu' ON CONFLICT DO NOTHING`} {
		if out, err := s.Try(role[who], db, sql); err != nil {
			t.Errorf("%s: got %s, %v; want err == nil", who, out, err)
		}
	}
	s.SQL(t, db, `UPDATE perlica.queue SET lane = E'p\n\n'`)
	weak, strong := worker, worker
	weak.Labels, strong.Labels = []string{}, []string{"gpu"}
	if got, err := h.Claim(t.Context(), weak, 5, nil); err != nil || len(got) > 0 {
		t.Errorf("a worker is given %v, %v", got, err)
	}
	if got, err := h.Claim(t.Context(), strong, 5, nil); err != nil || len(got) != 1 || got[0].ID != "gpu" {
		t.Errorf("the one that may have it: %v, %v", got, err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTeamsOfOneServer checks databases of one server that become teams at the same time. They
// share the server's roles.
func TestTeamsOfOneServer(t *testing.T) {
	s := hubtest.Start(t)
	s.SQL(t, "postgres", "CREATE ROLE maker LOGIN CREATEROLE") // a superuser needs no membership
	hubs := make([]*Hub, 8)
	for i := range hubs {
		db := s.Database(t)
		s.SQL(t, "postgres", "ALTER DATABASE "+db+" OWNER TO maker")
		hubs[i] = open(t, s.URL("maker", db))
		if _, err := hubs[i].Look(t.Context()); !errors.Is(err, ErrNoTeam) { // the connection works
			t.Fatalf("got %v; want errors.Is(err, ErrNoTeam)", err)
		}
	}
	var all sync.WaitGroup
	for _, h := range hubs {
		all.Go(func() {
			err := h.MakeSchema(t.Context())
			if err == nil { // row security applies to the tables' owner, too
				_, err = h.Found(t.Context(), Team{ID: "id", Name: "team", Admin: "key"}, "g1")
			}
			if err == nil {
				err = h.State(t.Context(), Member{Name: "alice", Version: 1, Key: "key", Rights: access.Rights{access.Admin},
					Login: "maker", Signature: []byte{}})
			}
			if err == nil {
				_, err = h.Submit(t.Context(), "g1", []Input{newInput("a", "x")})
			}
			if err == nil {
				_, err = h.Adopt(t.Context(), "g2", "alice", true)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.SQL(t, "postgres",
		"SELECT pg_has_role('maker', 'perlica_admin', 'usage'), pg_has_role('perlica_admin', "+
			"'perlica_member', 'member')"); got != "t|t" {
		t.Errorf(`got %v; want got == "t|t"`, got)
	}
}

// TestOwnersRights checks the functions that run with the rights of the schema's owner, and the functions that
// decide about membership. A member must not misuse them by a trigger on a table of the member, or by operators that
// PostgreSQL finds before its own.
func TestOwnersRights(t *testing.T) {
	s, db := hubtest.Shared(t)
	h := open(t, s.URL("owner", db))
	found(t, h, "alice")
	bob, dave := "bob_"+db, "dave_"+db
	for _, name := range []string{"bob", "dave"} {
		s.SQL(t, db, "CREATE ROLE "+name+"_"+db+" LOGIN IN ROLE perlica_member")
		m := Member{Name: name, Version: 1, Key: name, Rights: access.Rights{access.Ask}, Login: name + "_" + db,
			Signer: "alice", Signature: []byte{}}
		check(t, h.State(t.Context(), m))
		if m.Version, m.Gone = 2, true; name == "dave" {
			check(t, h.State(t.Context(), m))
		}
	}
	s.SQL(t, db, "GRANT CREATE ON SCHEMA public TO PUBLIC") // as before PostgreSQL 15
	for _, who := range []string{bob, dave} {
		out, err := s.Try(who, db, `
			CREATE TYPE pg_temp.c AS (v text);
			CREATE FUNCTION pg_temp.f(x pg_temp.c) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
				EXECUTE 'ALTER TABLE perlica.claims DISABLE ROW LEVEL SECURITY';
				RETURN (x).v;
			END $$;
			CREATE CAST (pg_temp.c AS text) WITH FUNCTION pg_temp.f(pg_temp.c) AS IMPLICIT;
			CREATE TEMP TABLE t (name pg_temp.c);
			CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION perlica.keep_logins();
			INSERT INTO t VALUES (row('n')::pg_temp.c)`)
		if err == nil || !strings.Contains(err.Error(), "permission denied for function perlica.keep_logins") {
			t.Errorf("%s has the owner's trigger: %q, %v", who, out, err)
		}
		schema := "s_" + who
		s.SQL(t, db, "CREATE SCHEMA "+schema+" AUTHORIZATION "+who)
		out, err = s.Try(who, db, `
			CREATE FUNCTION `+schema+`.yes(name, name) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
			CREATE FUNCTION `+schema+`.yes(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
			CREATE OPERATOR `+schema+`.= (LEFTARG = name, RIGHTARG = name, FUNCTION = `+schema+`.yes);
			CREATE OPERATOR `+schema+`.= (LEFTARG = text, RIGHTARG = text, FUNCTION = `+schema+`.yes);
			SET search_path = `+schema+`, pg_catalog;
			SELECT names, perlica.mine('alice'), perlica.may_sign('alice') FROM perlica.names() UNION ALL SELECT '', perlica.mine('alice'), perlica.may_sign('alice')`)
		for _, row := range strings.Split(out, "\n") {
			if err != nil || strings.HasPrefix(row, "alice") || strings.Contains(row, "|t") || who == dave &&
				strings.HasPrefix(row, "bob") {
				t.Errorf("%s is taken for %q, %v", who, out, err)
			}
		}
	}
}
