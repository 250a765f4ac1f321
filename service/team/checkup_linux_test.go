package team

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/kernel/checkup"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// checked returns the results of a machine's checkup, one line for each check.
func checked(t testing.TB, opt Options) (lines []string) {
	t.Helper()
	opt.Checkup(t.Context(), func(err error) string { return fmt.Sprint("do:", err) }, func(c checkup.Check) {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Name, c.Status, c.Detail))
	})
	return lines
}

func hasLine(lines []string, begin string) bool {
	return slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, begin) })
}

// TestCheckup checks the results for a hub and a machine's membership.
func TestCheckup(t *testing.T) {
	s := hubtest.Start(t)
	m := newMachine(t, s.URL("owner", "postgres"))
	if got := checked(t, m.opt); len(got) != 1 || !hasLine(got, "team-hub fail hub: this database holds no team") {
		t.Errorf("no team: %q", got)
	}
	if _, _, err := Init(t.Context(), m.opt, "team"); err != nil {
		t.Fatal(err)
	}
	if got := checked(t, m.opt); !hasLine(got, "team-membership fail this machine has not joined") {
		t.Errorf("before it joined: %q", got)
	}
	alice := m.join(t, "alice", true)
	got := checked(t, m.opt)
	for _, want := range []string{"team-hub ok team team, PostgreSQL ", "team-tls ok the hub is on this machine",
		"team-role warn owner is a superuser", "team-clock ok ",
		"team-durability fail fsync is off", "team-membership ok alice, may ask, approve, admin"} {
		if !hasLine(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}

	s.SQL(t, "postgres", "CREATE ROLE bob LOGIN")
	b := newMachine(t, s.URL("bob", "postgres"))
	if got := checked(t, b.opt); !hasLine(got, "team-hub fail hub: this role may not do that") {
		t.Errorf("a role without rights: %q", got)
	}
	s.SQL(t, "postgres", "GRANT perlica_member TO bob")
	bob := b.join(t, "bob", false)
	if got := checked(t, b.opt); !hasLine(got, "team-membership warn bob: no admin") || !hasLine(got, "team-role ok bob") {
		t.Errorf("before it is confirmed: %q", got)
	}
	if err := alice.Confirm(t.Context(), "bob", bob.Key, access.Rights{access.Ask, access.Admin}); err != nil {
		t.Fatal(err)
	}
	if got := checked(t, b.opt); !hasLine(got,
		"team-membership warn bob is an admin, and its role bob lacks perlica_admin") {
		t.Errorf("an admin without the role: %q", got)
	}
	other := b.opt
	other.URL = s.URL("owner", "postgres")
	if got := checked(t, other); !hasLine(got,
		"team-membership fail bob was confirmed with the role bob, and logs in as owner") {
		t.Errorf("another role: %q", got)
	}
	if err := alice.Leave(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if got := checked(t, b.opt); !hasLine(got, "team-membership warn bob: this machine has left") {
		t.Errorf("after it left: %q", got)
	}

	s.Kill()
	if got := checked(t, m.opt); len(got) != 1 || !hasLine(got, "team-hub fail hub: cannot be reached") {
		t.Errorf("a hub that is down: %q", got)
	}
}

// TestCheckupPromoted checks that a promoted server is named.
func TestCheckupPromoted(t *testing.T) {
	old := hubtest.Start(t)
	m, _ := founded(t, old, "postgres")
	standby := old.Backup(t, true)
	standby.Run(t)
	old.AwaitReplayed(t, standby)
	m.opt.URL = standby.URL("owner", "postgres")
	if got := checked(t, m.opt); !hasLine(got, "team-hub fail hub: the server is a standby") {
		t.Errorf("a standby: %q", got)
	}
	standby.Promote(t)
	if got := checked(t, m.opt); !hasLine(got, "team-hub fail team team: hub: the present generation did not begin") {
		t.Errorf("promoted: %q", got)
	}
}

// TestCheckupSays checks the results for settings that lose data, for an unverified
// connection, and for clocks that differ by a day.
func TestCheckupSays(t *testing.T) {
	for want, s := range map[string]hub.State{
		"fail fsync is off": {Commit: "on"},
		"ok what is acknowledged is on the server's disk": {Commit: "on", FSync: true},
		"warn standbys follow the server":                 {Commit: "on", FSync: true, Followers: 1},
		"warn synchronous_commit is remote_write": {Commit: "remote_write", FSync: true, Followers: 1,
			Standbys: "a"},
		"warn commits wait for a standby (a), and none follows":     {Commit: "on", FSync: true, Standbys: "a"},
		"ok commits wait for a standby (a, synchronous_commit = r":  {Commit: "remote_apply", FSync: true, Standbys: "a", Followers: 1},
		"ok commits wait for a standby (a, synchronous_commit = on": {Commit: "off", FSync: true, Standbys: "a", Followers: 1},
	} {
		if c := checkDurability(s); !strings.HasPrefix(string(c.Status)+" "+c.Detail, want) || c.Status != checkup.OK &&
			c.Hint == "" {
			t.Errorf("%q: %+v", want, c)
		}
	}
	for want, s := range map[string]hub.State{"ok the connection is encrypted, and": {TLS: true, Verified: true},
		"ok the hub is on this": {Local: true}, "warn the connection is encrypted, but": {TLS: true}} {
		if c := checkTLS(s); !strings.HasPrefix(string(c.Status)+" "+c.Detail, want) {
			t.Errorf("%q: %+v", want, c)
		}
	}
	now := time.Now()
	for want, here := range map[string]time.Time{"ok as the hub's": now.Add(-time.Second),
		"warn this machine's clock is 24h0m0s ahead of": now.Add(24 * time.Hour),
		"warn this machine's clock is 24h0m0s behind":   now.Add(-24 * time.Hour)} {
		if c := checkClock(here, now); !strings.HasPrefix(string(c.Status)+" "+c.Detail, want) {
			t.Errorf("%q: %+v", want, c)
		}
	}
	for want, list := range map[string][]hub.Copy{
		"ok this machine has not worked":                     {{Worker: "b", Size: 1}},
		"ok the copy of this machine's log has 4500 of 5000": {{Worker: "a", Size: 4500}},
		"warn the copy of this machine's log has 7 of 5000":  {{Worker: "b", Size: 5000}, {Worker: "a", Size: 7}},
		"fail the copy of this machine's log has another":    {{Worker: "a", Size: 5000, Forked: 3}},
	} {
		if c := checkCopy(list, "a", 5000); !strings.HasPrefix(string(c.Status)+" "+c.Detail, want) ||
			c.Status != checkup.OK && c.Hint == "" {
			t.Errorf("%q: %+v", want, c)
		}
	}
	for want, other := range map[string]hub.Copy{
		"ok the copy of b's log has 2000 events, signed up to 1500, cosigned up to 0": {Worker: "b", Size: 2000, Checkpoint: 1500},
		"warn the copy of b's log has 2000 events, signed up to 1000":                 {Worker: "b", Size: 2000, Checkpoint: 1000},
		"fail the copy of b's log has another event 3": {Worker: "b", Size: 2000,
			Checkpoint: 2000, Forked: 3},
	} {
		if c := checkOther(other); !strings.HasPrefix(string(c.Status)+" "+c.Detail, want) || c.Name != "team-copy-b" ||
			c.Status != checkup.OK && c.Hint == "" {
			t.Errorf("%q: %+v", want, c)
		}
	}
}
