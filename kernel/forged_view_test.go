package kernel

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/policy/shell"
)

// TestForgedApprovals checks that rows that a stranger wrote into the view of the approvals change no decision. A no
// that was deleted from the view must still refuse. If the view cannot be read, a person is asked, even if the mode
// would allow the request.
func TestForgedApprovals(t *testing.T) {
	r := openRunner(t)
	r.opt.ViewKey = []byte("a secret of the user's")
	no := policy.Approval{ID: "n", Effect: policy.Deny, Scope: policy.ScopeContext, Command: "make", By: "me",
		Made: time.Unix(1, 0).UTC()}
	yes := policy.Approval{ID: "y", Effect: policy.Allow, Scope: policy.ScopeContext, Command: "make test", By: "me",
		Made: time.Unix(1, 0).UTC()}
	for _, a := range []policy.Approval{no, yes} {
		append1(t, r, event.NewFact(event.ApprovalRemembered, "user", event.Refs{}, a))
		if err := r.opt.Vouchers.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	append1(t, r, event.NewFact(event.ApprovalRevoked, "user", event.Refs{}, policy.Revocation{ID: "y", By: "me"}))
	req := policy.Request{Kind: "execute", HasCommand: true, Commands: []shell.Command{{Text: "make"}}}
	decide := func() policy.Effect { return r.policy.Decide(req, policy.ModeAllow).Effect }
	if got := decide(); got != policy.Deny {
		t.Fatalf("before: %s", got)
	}
	db, err := sqlx.Open("sqlite", r.opt.Paths.Approvals)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, forge := range []string{
		`DELETE FROM approvals`,
		`UPDATE approvals SET approval = replace(approval, '"make"', '"makes"')`,
		`UPDATE approvals SET approval = replace(approval, 'deny', 'allow')`,
		`INSERT OR REPLACE INTO approvals SELECT 'n', 1, replace(approval, '"make"', '"other"') FROM approvals`,
		`DROP TABLE approvals`,
	} {
		if _, err := db.Exec(forge); err != nil {
			t.Fatal(forge, err)
		}
		list, err := r.approvals()
		if got := decide(); got != policy.Deny || err != nil || len(list) != 1 {
			t.Errorf("%s: %s; %+v, %v", forge, got, list, err)
		}
	}
	if _, err := db.Exec(
		`DROP TABLE position; DROP TABLE seal; CREATE VIEW position AS SELECT 1 AS id; CREATE TABLE t (x) STRICT`); err == nil {
		t.Error("a table without a type")
	}
	if err := errors.Join(r.standing.Close(), os.Remove(r.opt.Paths.Approvals),
		os.Mkdir(r.opt.Paths.Approvals, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := decide(); got != policy.Ask {
		t.Errorf("where the approvals cannot be read: %s", got)
	}
}
