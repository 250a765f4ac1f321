package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestProjectMissing checks that a message for an unserved project goes to no other project. Its
// sender is told, also when the message comes again while the project is served.
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
	// The first contact is paired in another project, too.
	for i, p := range []*person{alice, bob} {
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
	platform.more <- channel.Inbound{ID: alice.Contact + "/lost0", Chat: alice.Contact, Contact: alice.Contact,
		Text: "not for the lab", Sent: time.Now()}
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

// sabotaged opens the database of a project's log next to the bridge and runs a statement.
func sabotaged(shop *world, statement string) error {
	db, err := sqlx.Open("sqlite", "file:"+shop.path("eventlog.db")+"?_pragma=busy_timeout(20000)")
	if err != nil {
		return err
	}
	_, err = db.Exec(storetest.Editable + statement)
	return errors.Join(err, db.Close())
}

// TestProjectFails checks that a project with a failed log ends and the others continue. After its
// repair the same bot serves it again.
func TestProjectFails(t *testing.T) {
	broken := errors.New("its log is damaged")
	for said, how := range map[string]struct {
		fails, repaired func(b *twice, shop *world) error
	}{
		"shop cannot be served now. Your message did not reach its agent": {
			func(b *twice, _ *world) error { b.miss(broken); return b.runner(1).Close() },
			func(b *twice, _ *world) error { b.miss(nil); return nil },
		},
		"shop failed while it received your message. If it has the message, it answers": {
			func(_ *twice, shop *world) error {
				return sabotaged(shop, `CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no room'); END`)
			},
			func(_ *twice, shop *world) error { return sabotaged(shop, `DROP TRIGGER full`) },
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
		alice.say("before")
		alice.expect("You said: before")
		if err := how.fails(b, u.projects[1]); err != nil {
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
		if err := how.repaired(b, u.projects[1]); err != nil {
			t.Fatal(err)
		}
		b.returns(t, alice)
		alice.say("after")
		alice.expect("You said: after")
		stop()
		if n := u.calls("after"); n != [2]int{0, 1} {
			t.Errorf("calls: %v", n)
		}
		if n := u.calls("there?"); n != [2]int{} {
			t.Errorf("calls of what came as it failed: %v", n)
		}
	}
}

// returns waits until a person can go to the repaired second project.
func (b *twice) returns(t *testing.T, p *person) {
	t.Helper()
	for {
		p.say("/project shop")
		if a := p.expect("1. lab"); strings.Contains(a.Text, "You are in shop now") &&
			!strings.Contains(a.Text, "cannot be served now") {
			return
		}
		pause(50 * time.Millisecond)
	}
}

// TestProjectIsWanted checks that an unserved project is opened as soon as a person goes there.
func TestProjectIsWanted(t *testing.T) {
	u := newUser(t)
	for _, w := range u.projects {
		w.isPaired("alice")
	}
	alice := u.own.phone("alice")
	_, stop := u.serve(nil, nil)
	alice.say("/project shop")
	alice.expect("You are in shop now")
	stop()
	b, stop := u.serve(nil, errors.New("its folder is gone"))
	// After five attempts the next pause is five seconds. The person's message must therefore cause an earlier attempt.
	for tries := 0; tries < 5; pause(5 * time.Millisecond) {
		b.mu.Lock()
		tries = b.tries
		b.mu.Unlock()
	}
	repaired := time.Now()
	b.miss(nil)
	b.returns(t, alice)
	if took := time.Since(repaired); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
	alice.say("hello")
	alice.expect("You said: hello")
	stop()
	if n := u.calls("hello"); n != [2]int{0, 1} {
		t.Errorf("calls: %v", n)
	}
}

// TestCodesOfProjects checks that a code pairs in its own project. A contact of another project that guesses codes is
// limited like a stranger.
func TestCodesOfProjects(t *testing.T) {
	u := newUser(t)
	u.projects[0].isPaired("alice")
	alice, bob := u.own.phone("alice"), u.own.phone("bob")
	b, stop := u.serve(nil, nil)
	code, err := service.OpenPairing(t.Context(), b.runner(1).Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wrong := code[:5] + string('0'+(code[5]-'0'+1)%10)
	alice.say(wrong) // an input for the lab
	alice.expect("You said: " + wrong)
	alice.say(code) // too soon after the wrong code
	alice.expect("You said: ")
	bob.say(wrong)
	bob.expect("That is not the code")
	if n, err := b.runner(1).Log().Count(t.Context(), event.Query{Types: []event.Type{event.PairingAttempted}}); err != nil || n != 2 {
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
