package service_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestProjectMissing: what is written to a project that cannot be served goes to no other one: its sender is told,
// also when the message comes again while it is served.
func TestProjectMissing(t *testing.T) {
	u := newUser(t)
	for _, w := range u.projects {
		w.isPaired("alice")
	}
	u.projects[1].isPaired("bob")
	u.projects[0].isPaired("carol")
	alice, bob, carol := u.own.phone("alice"), u.own.phone("bob"), u.own.phone("carol")
	_, stop := u.serve(nil, nil)
	alice.say("/project shop")
	alice.expect("You are in shop now")
	bob.say("here")
	bob.expect("You said: here")
	stop()

	b, stop := u.serve(nil, errors.New("its log is damaged"))
	for i, p := range []*person{alice, bob} { // who is paired elsewhere, too, and who is not
		p.Say(local.Message{ID: fmt.Sprint("lost", i), Text: "not for the lab"})
		p.expect("shop cannot be served now. Your message did not reach its agent")
	}
	carol.say("all is well")
	carol.expect("You said: all is well")
	alice.say("/project")
	alice.expect("2. shop (you are here) (cannot be served now)")
	live, err := b.Live(t.Context())
	if err != nil || len(live.Projects) != 2 || live.Projects[1] != "shop: not served: its log is damaged" {
		t.Errorf("the projects: %q, %v", live.Projects, err)
	}
	alice.say("/project lab")
	alice.expect("You are in lab now")
	alice.say("for the lab")
	alice.expect("You said: for the lab")
	stop()

	platform := &again{more: make(chan channel.Inbound), cursors: make(chan string, 1)}
	_, stop = u.serve(func(ch channel.Channel) channel.Channel { platform.full = ch.(full); return platform }, nil)
	platform.more <- channel.Inbound{ID: alice.Contact + "/lost0", Chat: alice.Contact, Contact: alice.Contact, Text: "not for the lab", Sent: time.Now()}
	bob.say("again")
	bob.expect("You said: again")
	stop()
	if n := u.calls("not for the lab"); n != [2]int{} {
		t.Errorf("called %v times", n)
	}
	if n := alice.count("cannot be served now. Your"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// TestProjectFails: a project whose log takes nothing any more ends, and no other one.
func TestProjectFails(t *testing.T) {
	for said, fails := range map[string]func(b *twice, shop *world) error{
		"shop cannot be served now. Your message did not reach its agent": func(b *twice, _ *world) error { return b.runners[1].Close() },
		"shop failed while it took your message. Whether it has it is not known": func(_ *twice, shop *world) error {
			db, err := sqlx.Open("sqlite", "file:"+shop.path("eventlog.db")+"?_pragma=busy_timeout(20000)")
			if err != nil {
				return err
			}
			_, err = db.Exec(`CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no room'); END`)
			return errors.Join(err, db.Close())
		},
	} {
		u := newUser(t)
		for _, w := range u.projects {
			w.isPaired("alice")
		}
		alice := u.own.phone("alice")
		b, stop := u.serve(nil, nil)
		alice.say("/project shop")
		alice.expect("You are in shop now")
		if err := fails(b, u.projects[1]); err != nil {
			t.Fatal(err)
		}
		alice.say("is anybody there?")
		alice.expect(said)
		alice.say("and now?")
		alice.expect("shop cannot be served now. Your message did not reach its agent")
		alice.say("/project lab")
		alice.expect("You are in lab now")
		alice.say("hello")
		alice.expect("You said: hello")
		if n := u.calls("there?"); n != [2]int{} {
			t.Errorf("calls: %v", n)
		}
		b.runners = b.runners[:1]
		b.closing = append(b.closing[:2:2], func() error {
			_ = b.Projects.Close(context.Background()) // that of the shop cannot write how it ended
			return nil
		})
		stop()
	}
}

// TestCodesOfProjects: a code pairs in its own project, and a contact of another one that guesses at it is counted
// as everybody is.
func TestCodesOfProjects(t *testing.T) {
	u := newUser(t)
	u.projects[0].isPaired("alice")
	alice, bob := u.own.phone("alice"), u.own.phone("bob")
	b, stop := u.serve(nil, nil)
	code, err := service.OpenPairing(t.Context(), b.runners[1].Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wrong := code[:5] + string('0'+(code[5]-'0'+1)%10)
	alice.say(wrong) // to the lab it is an input
	alice.expect("You said: " + wrong)
	alice.say(code) // too soon behind the wrong one
	alice.expect("You said: ")
	bob.say(wrong)
	bob.expect("That is not the code")
	if n, err := b.runners[1].Log().Count(t.Context(), event.Query{Types: []event.Type{event.PairingAttempted}}); err != nil || n != 2 {
		t.Errorf("%d guesses were counted, %v", n, err)
	}
	carol := u.own.phone("carol")
	carol.say(code)
	carol.expect("shop\n\nYou are paired")
	carol.say("hello shop")
	carol.expect("You said: hello shop")
	stop()
	if n := u.calls("hello shop"); n != [2]int{0, 1} {
		t.Errorf("called %v times", n)
	}
}
