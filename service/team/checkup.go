package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/checkup"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/team/hub"
)

// clockOff is the largest difference between this machine's clock and the hub's that causes no warning.
const clockOff = 30 * time.Second

// Checkup examines the hub and this machine's membership for 'perlica doctor'. It calls the function "report" with each
// result and changes nothing. The function "hintOf" returns the remedy for an error.
func (o Options) Checkup(ctx context.Context, hintOf func(error) string, report func(checkup.Check)) {
	tell := func(name string, status checkup.Status, hint, format string, args ...any) {
		report(checkup.Check{Name: name, Status: status, Detail: fmt.Sprintf(format, args...), Hint: hint})
	}
	h, err := hub.Open(o.URL)
	if err != nil {
		tell("team-hub", checkup.Fail, hintOf(err), "%v", err)
		return
	}
	defer func() { _ = h.Close() }() // nothing was written
	asked := time.Now()
	s, err := h.Look(ctx)
	heard := time.Now()
	if err != nil {
		tell("team-hub", checkup.Fail, hintOf(err), "%v", err)
		return
	}
	if !s.Adopted {
		tell("team-hub", checkup.Fail, hintOf(hub.ErrNotAdopted), "team %s: %v; nothing is taken and nothing accepted",
			s.Name, hub.ErrNotAdopted)
	} else {
		tell("team-hub", checkup.OK, "", "team %s, PostgreSQL %d.%d, schema %d",
			s.Name, s.Server/10000, s.Server%10000, hub.SchemaVersion)
	}
	report(checkTLS(s))
	report(checkRole(s))
	report(checkClock(asked.Add(heard.Sub(asked)/2), s.Clock))
	report(checkDurability(s))
	o.checkMembership(ctx, h, s, hintOf, tell, report)
}

func checkTLS(s hub.State) checkup.Check {
	c := checkup.Check{Name: "team-tls", Status: checkup.OK}
	switch {
	case s.TLS && s.Verified:
		c.Detail = "the connection is encrypted, and the server's certificate was verified"
	case s.Local:
		c.Detail = "the hub is on this machine"
	default:
		c.Status, c.Detail = checkup.Warn,
			"the connection is encrypted, but the server's certificate is not verified: another server could take its place"
		c.Hint = "sslmode=verify-full in team.url, with sslrootcert=FILE where the certificate is no public one"
	}
	return c
}

func checkRole(s hub.State) checkup.Check {
	c := checkup.Check{Name: "team-role", Status: checkup.OK, Detail: s.Login}
	if s.Superuser {
		c.Status, c.Detail = checkup.Warn,
			s.Login+" is a superuser of the database, or bypasses row security: who has its password can change and delete "+
				"everything there"
		c.Hint = "a role of its own for each machine, in perlica_member: see docs/team.md"
	}
	return c
}

func checkClock(here, hub time.Time) checkup.Check {
	c := checkup.Check{Name: "team-clock", Status: checkup.OK, Detail: "as the hub's"}
	if off := here.Sub(hub).Round(time.Second); off.Abs() > clockOff {
		c.Status = checkup.Warn
		c.Detail =
			fmt.Sprintf(
				"this machine's clock is %s %s the hub's; nothing is decided by it, but the times of this machine's log are off",
				off.Abs(), map[bool]string{true: "ahead of", false: "behind"}[off > 0])
		c.Hint = "have it set by NTP; --team-not-before is compared with the hub's clock alone"
	}
	return c
}

// checkDurability reports which acknowledged data the hub can lose.
func checkDurability(s hub.State) checkup.Check {
	c := checkup.Check{Name: "team-durability", Status: checkup.OK}
	const docs = "see \"Generations: failover and backups\" in docs/team.md"
	switch standbys := strings.TrimSpace(s.Standbys); {
	case !s.FSync:
		c.Status, c.Detail = checkup.Fail,
			"fsync is off: if the server's machine crashes, inputs and claims that it acknowledged are lost, and an input "+
				"can be called twice"
		c.Hint = "fsync = on in the server's configuration"
	case standbys == "" && s.Followers == 0:
		c.Detail =
			"what is acknowledged is on the server's disk, and nowhere else: if that disk is lost, so is what came since the " +
				"last backup"
	case standbys == "":
		c.Status, c.Detail = checkup.Warn,
			"standbys follow the server, and commits do not wait for them: after a promotion the last inputs and claims "+
				"may be missing"
		c.Hint = "synchronous_standby_names, and synchronous_commit = on or remote_apply; " + docs
	case s.Commit == "remote_write":
		c.Status, c.Detail = checkup.Warn,
			"synchronous_commit is remote_write: what is acknowledged is lost if server and standby crash together"
		c.Hint = "synchronous_commit = on or remote_apply; " + docs
	case s.Followers == 0:
		c.Status, c.Detail = checkup.Warn,
			fmt.Sprintf("commits wait for a standby (%s), and none follows: whatever writes to the hub waits", standbys)
		c.Hint = "start the standby, or take it out of synchronous_standby_names"
	default:
		commit := s.Commit
		if commit == "off" || commit == "local" {
			// Perlica sets synchronous_commit to "on" in each of its sessions, so the weaker value of the server does
			// not apply.
			commit = "on"
		}
		c.Detail =
			fmt.Sprintf(
				"commits wait for a standby (%s, synchronous_commit = %s): nothing acknowledged is missing after a promotion",
				standbys, commit)
	}
	return c
}

// checkMembership examines this machine's log of the team, read-only, and the hub's statements about the name of this
// machine.
func (o Options) checkMembership(ctx context.Context, h *hub.Hub, s hub.State, hintOf func(error) string,
	tell func(name string, status checkup.Status, hint, format string, args ...any), report func(checkup.Check)) {
	const name = "team-membership"
	joined, size, err := o.joined(ctx, s)
	if err != nil {
		tell(name, checkup.Fail, hintOf(err), "%v", err)
		return
	}
	list, err := h.Members(ctx)
	if err != nil {
		tell(name, checkup.Fail, hintOf(err), "%v", err)
		return
	}
	var me hub.Member
	for _, m := range list {
		if m.Name == joined.As && m.Version > me.Version {
			me = m
		}
	}
	switch {
	case me.Version == 0 || me.Key != joined.Key:
		tell(name, checkup.Warn, hintOf(errNotConfirmed), "%s: %v", joined.As, errNotConfirmed)
	case me.Gone:
		tell(name, checkup.Warn, hintOf(errGone), "%s: %v", joined.As, errGone)
	case me.Login != s.Login:
		tell(name, checkup.Fail, "log in as that role in team.url, or join again",
			"%s was confirmed with the role %s, and logs in as %s: the hub takes nothing of it", joined.As, me.Login, s.Login)
	case slices.Contains(me.Rights, access.Admin) && !s.AdminRole:
		tell(name, checkup.Warn, "GRANT perlica_admin TO "+s.Login,
			"%s is an admin, and its role %s lacks perlica_admin: it cannot confirm or adopt", joined.As, s.Login)
	default:
		tell(name, checkup.OK, "", "%s, may %s", joined.As, access.Rights(me.Rights).Shown())
	}
	there, err := hub.ListCopies(ctx, h)
	if err != nil {
		tell("team-copy", checkup.Fail, hintOf(err), "%v", err)
		return
	}
	report(checkCopy(there, joined.As, size))
	for _, c := range there {
		if c.Worker != joined.As {
			report(checkOther(c))
		}
	}
}

// behind is the largest number of events that a copy may lack without a warning. It is the size of
// one batch.
const behind = 1000

// checkCopy reports how many events the copy of this machine's log lacks.
func checkCopy(list []hub.Copy, as string, size int64) checkup.Check {
	c := checkup.Check{Name: "team-copy", Status: checkup.OK}
	i := slices.IndexFunc(list, func(c hub.Copy) bool { return c.Worker == as })
	if i < 0 {
		c.Detail = "this machine has not worked for the team: there is no copy of its log"
		return c
	}
	own := list[i]
	c.Detail = fmt.Sprintf("the copy of this machine's log has %d of %d events, signed up to %d", own.Size, size,
		own.Checkpoint)
	switch {
	case own.Forked != 0:
		c.Status, c.Detail = checkup.Fail,
			fmt.Sprintf("the copy of this machine's log has another event %d: nothing more is taken under its name", own.Forked)
		c.Hint = "see \"Copies\" in docs/team.md"
	case size-own.Size >= behind:
		c.Status, c.Hint = checkup.Warn,
			"perlica team work sends what is missing; where it runs, its messages say what keeps it"
	}
	return c
}

// checkOther reports how much of the copy of another worker's log is signed by the worker and by
// keepers. Only the worker knows the length of its log.
func checkOther(other hub.Copy) checkup.Check {
	c := checkup.Check{Name: "team-copy-" + other.Worker, Status: checkup.OK}
	c.Detail = fmt.Sprintf("the copy of %s's log has %d events, signed up to %d, cosigned up to %d", other.Worker,
		other.Size, other.Checkpoint, other.Cosigned)
	switch {
	case other.Forked != 0:
		c.Status, c.Detail = checkup.Fail,
			fmt.Sprintf("the copy of %s's log has another event %d than the log: nothing more is taken under that name",
				other.Worker, other.Forked)
		c.Hint = "see \"Copies\" in docs/team.md"
	case other.Size-other.Checkpoint >= behind:
		c.Status, c.Hint = checkup.Warn,
			fmt.Sprintf(
				"look at %s: its worker signs its log as it goes, and at its end; 'perlica team workers' says when it was "+
					"last heard of", other.Worker)
	}
	return c
}

// joined returns the name and the key under which this machine joined the team, and the number of
// events in its log of the team.
func (o Options) joined(ctx context.Context, s hub.State) (joined fact.TeamJoined, size int64, err error) {
	p, err := project.Team(o.Dir, o.Environ, s.Name)
	if err != nil {
		return joined, 0, err
	}
	log, _, err := p.OpenReader(ctx)
	if errors.As(err, new(project.NoLogError)) {
		return joined, 0, errNotJoined
	}
	if err != nil {
		return joined, 0, err
	}
	defer func() { _ = log.Close() }() // the log was only read
	e, ok, err := log.Last(ctx, event.Query{Types: []event.Type{event.TeamJoined}})
	if err != nil || !ok {
		return joined, 0, cmp.Or(err, errNotJoined)
	}
	if err := e.Decode(&joined); err != nil {
		return joined, 0, err
	}
	if size, _, err = log.Head(ctx); err != nil {
		return joined, 0, err
	}
	return joined, size, otherTeam(joined, s)
}

// otherTeam returns an error if the membership belongs to another team than the hub's.
func otherTeam(joined fact.TeamJoined, s hub.State) error {
	if joined.Team != s.ID || joined.Admin != s.Admin {
		return fmt.Errorf("%w: %s", errOtherTeam, s.Name)
	}
	return nil
}
