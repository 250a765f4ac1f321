package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
)

// runElsewhere runs an input as another process of the project does while the bridge runs.
func (w *world) runElsewhere(text string) (result <-chan record.Result) {
	w.t.Helper()
	r, err := w.openRunner(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	setup, err := w.options(r).Setup("", "")
	if err != nil {
		w.t.Fatal(err)
	}
	conv, err := r.Converse(w.t.Context(), setup, time.Minute, "chat")
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan record.Result, 1)
	go func() {
		res, err := conv.Run(context.Background(), kernel.Turn{
			Input: kernel.Input{Text: text, Source: "chat", Sender: "me"}, Permissions: "ask", AnswerIn: 10 * time.Minute,
		})
		if err != nil {
			w.t.Errorf("the turn at the computer: %v", err)
		}
		_ = conv.Close(context.Background()) // the error is on record
		_ = r.Close()                        // the error is on record
		done <- res
	}()
	return done
}

// TestFollow checks that a contact with the right admin is told when a turn of another front end asks or ends. The
// contact can answer on the phone. Other contacts learn nothing.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice, access.OfPeople()...)
	w.pair(s, bob)
	bob.say("/follow on")
	bob.expect("needs the right admin")
	alice.say("/follow on")
	alice.expect("You get a message when a turn")
	res := w.runElsewhere(`@ask execute "May I" command="make"`)
	card := alice.expect("In a turn at the computer (chat): @ask execute")
	alice.say("and this?") // not an answer to the question
	alice.expect("It is held")
	alice.allow(card)
	alice.expect("answered at")
	if got := <-res; got.Permissions.Allowed != 1 {
		t.Errorf("the turn ended as %+v", got)
	}
	alice.expect("A turn at the computer (chat) has ended: @ask execute")

	// The card on the phone is closed when another front end or another contact answers its question.
	res = w.runElsewhere(`@ask execute "And I" command="make"`)
	alice.expect("In a turn at the computer (chat)")
	open, err := s.r.PendingQuestions(t.Context())
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v, %v", open, err)
	}
	if err := s.r.AnswerQuestion(t.Context(), open[0], interaction.Answer{Option: open[0].Options[0].ID,
		By: "me at the desk", Where: "chat"}); err != nil {
		t.Fatal(err)
	}
	alice.expect("at the desk answered at")
	<-res
	alice.expect("has ended")

	// A contact's own turn is not reported as a turn of another front end. The next report would come after such a
	// report.
	alice.say("hello")
	alice.expect("You said: hello")
	<-w.runElsewhere("behind it")
	alice.expect("has ended: behind it")
	alice.say("/follow off")
	alice.expect("about your own turns only")
	<-w.runElsewhere("hello from the desk")
	alice.say("again")
	alice.expect("You said: again")
	if n := alice.count("has ended"); n != 3 || bob.count("at the computer") > 0 {
		t.Errorf("alice was told %d times, bob %d times", n, bob.count("at the computer"))
	}

	// A contact without the right gets no report, even if it followed before. The contact with the
	// right gets the report after that.
	carol := w.phone("carol")
	w.pair(s, carol, access.OfPeople()...)
	for _, p := range []*person{alice, carol} {
		p.say("/follow on")
		p.expect("You get a message when a turn")
	}
	list, err := s.Records().Contacts(t.Context())
	if err != nil || list[0].ID != alice.Contact {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := s.Records().Grant(t.Context(), s.r.Log(), list[0], service.DefaultRights(), "test"); err != nil {
		t.Fatal(err)
	}
	<-w.runElsewhere("a secret")
	carol.expect("has ended: a secret")
	alice.say("once more")
	alice.expect("You said: once more")
	if alice.count("a secret") > 0 {
		t.Error("a contact without the right was told")
	}
}

// TestFollowAcrossARestart checks that the next bridge continues to follow. It does not report an
// open question as closed.
func TestFollowAcrossARestart(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice, access.OfPeople()...)
	alice.say("/follow on")
	alice.expect("You get a message when a turn")
	res := w.runElsewhere(`@ask execute "May I" command="make"`)
	card := alice.expect("In a turn at the computer")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits())
	alice.expect("the question is still open")
	alice.say("/allow " + asking.FindStringSubmatch(card.Text)[1][1:])
	alice.expect("Answered")
	<-res
	alice.expect("A turn at the computer (chat) has ended")
}

// TestGrant checks that rights change at once and without a new pairing, and only if this user has changed them.
func TestGrant(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("/policy revoke x")
	alice.expect("you may not do that here")
	contact := func() service.Contact {
		list, err := s.Records().Contacts(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	alice.say("hello")
	alice.expect("You said: hello")
	before := contact()
	if err := s.Records().Grant(t.Context(), s.r.Log(), before, access.OfPeople(), "test"); err != nil {
		t.Fatal(err)
	}
	if now := contact(); !now.Rights.Has(access.Admin) || now.Session != before.Session {
		t.Errorf("%+v became %+v", before, now)
	}
	alice.say("/policy revoke x")
	alice.expect("there is no such standing approval")
	if err := s.Records().Grant(t.Context(), s.r.Log(), contact(), access.Rights{access.Approve}, "test"); err != nil {
		t.Fatal(err)
	}
	alice.say("hello?")
	alice.expect("You may not send inputs")

	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	counted := func(at *world) int {
		o := at.serve(local.DefaultLimits())
		list, err := o.Records().Contacts(t.Context())
		if err = errors.Join(err, o.stop()); err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	// A log gives no rights without the vouchers of its user. An older copy of the log in the same place gives no
	// earlier rights either.
	copied := newWorld(t)
	copyAll(t, w, copied, false)
	if n := counted(copied); n > 0 {
		t.Errorf("%d contacts count elsewhere", n)
	}
	s = w.serve(local.DefaultLimits())
	if err := s.Records().Grant(t.Context(), s.r.Log(), contact(), access.Rights{access.Ask}, "test"); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if n := counted(w); n != 1 {
		t.Errorf("%d contacts count", n)
	}
	copyAll(t, copied, w, false)
	if n := counted(w); n > 0 {
		t.Errorf("%d contacts have the rights from before", n)
	}
}
