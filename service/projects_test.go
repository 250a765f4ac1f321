package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestProjects checks one bot with two projects and two people. Each message goes to its sender's
// current project. Answers and questions go to the project that they belong to.
func TestProjects(t *testing.T) {
	u := newUser(t)
	b, stop := u.serve(nil, nil)
	alice, bob := u.own.phone("alice"), u.own.phone("bob")
	u.pair(b, alice, 0)
	u.pair(b, bob, 0)
	u.pair(b, alice, 1) // the last pairing makes this her current project
	alice.say("to the shop")
	alice.expect("You said: to the shop")
	bob.say("to the lab")
	bob.expect("You said: to the lab")
	bob.say("/project shop")
	bob.expect(`There is no project "shop" for you here`)
	alice.say("/project")
	if a := alice.expect("1. lab"); !strings.Contains(a.Text, "2. shop (you are here)") {
		t.Errorf("the projects: %q", a.Text)
	}
	alice.say("/status")
	alice.expect("Project: shop")

	// A question of the shop is answered from the lab by its id, by a reply, by a bare number, and
	// by its button.
	for i, answer := range []func(a local.Arrived, id string) local.Message{
		func(_ local.Arrived, id string) local.Message { return local.Message{Text: id + " 1"} },
		func(a local.Arrived, _ string) local.Message { return local.Message{Text: "1", ReplyTo: a.Key} },
		func(local.Arrived, string) local.Message { return local.Message{Text: "1"} },
		func(_ local.Arrived, id string) local.Message { return local.Message{Text: "/allow " + id[1:]} },
		func(local.Arrived, string) local.Message { return local.Message{Text: "/allow"} },
	} {
		alice.say("/project 2")
		alice.expect("You are in shop now")
		alice.say(`@ask execute "May I" command="make"`)
		card := alice.expect("May I")
		if !strings.HasPrefix(card.Text, "📁 shop") {
			t.Errorf("the card does not name its project: %q", card.Text)
		}
		alice.say("/project LAB")
		alice.expect("You are in lab now")
		if a := alice.answers(u, answer(card, asking.FindStringSubmatch(card.Text)[1]),
			"permission: allow-once"); !strings.HasPrefix(a.Text, "📁 shop") {
			t.Errorf("%d: the answer does not name its project: %q", i, a.Text)
		}
	}
	if n := u.calls("May I"); n != [2]int{0, 5} {
		t.Errorf("called %v times", n)
	}

	// The status message of a running turn names the project, too.
	alice.say("/project shop")
	alice.expect("You are in shop now")
	alice.say("@tool read Look path=x\n@sleep 4s\n@say looked")
	alice.expect("looked")
	if n := alice.count("📁 shop 1 tool call"); n == 0 {
		t.Error("no sign of progress names its project")
	}
	alice.say("/project lab")
	alice.expect("You are in lab now")

	// A text typed while the other project has an open question is held. A bare number is ambiguous
	// if both projects have one.
	alice.say("/project shop")
	alice.say(`@ask execute "May I too" command="make"`)
	card := alice.expect("May I too")
	alice.say("/project lab")
	alice.expect("You are in lab now")
	alice.say("go on then")
	alice.expect("It is held")
	alice.say("/withdraw")
	alice.expect("Taken back")
	bob.say(`@ask execute "And I" command="make"`)
	bob.expect("And I")
	carol := u.own.phone("carol")
	u.pair(b, carol, 1)
	u.pair(b, carol, 0)
	carol.say(`@ask execute "In the lab" command="make"`)
	carol.expect("In the lab")
	carol.say("/project shop")
	carol.say(`@ask execute "In the shop" command="make"`)
	carol.expect("It is held")
	carol.say("/send")
	inShop := carol.expect("In the shop")
	for range 2 {
		carol.say("1")
		carol.expect("It is held")
		carol.say("/withdraw")
		carol.expect("Taken back")
		carol.say("/project lab")
	}
	carol.say(asking.FindStringSubmatch(inShop.Text)[1] + " 1") // the id is unambiguous
	answer := carol.expect("permission: allow-once")
	carol.say("/stop")
	carol.expect("stopped")
	carol.Say(local.Message{Text: "about that", ReplyTo: answer.Key}) // a reply to a message of the shop goes to the shop
	carol.expect("You said: about that")
	// a reply to a message of the shop goes to the shop
	alice.Say(local.Message{Text: "to the shop again", ReplyTo: card.Key})
	alice.expect("It is held")
	alice.say("/deny " + asking.FindStringSubmatch(card.Text)[1][1:])
	alice.expect("permission: reject-once")
	bob.say("/deny")
	bob.expect("permission: reject-once")
	alice.say("hello lab")
	alice.expect("You said: hello lab")
	stop()
	for text, want := range map[string][2]int{"to the shop": {0, 1}, "to the lab": {1, 0}, "go on then": {},
		"hello lab": {1, 0}, "again": {}, "about that": {0, 1}} {
		if n := u.calls(text); n != want {
			t.Errorf("%q was called %v times, want %v", text, n, want)
		}
	}
}

// gathering is a channel with a first poll that returns n messages together. The bot dies after it
// has recorded that they are read.
type gathering struct {
	full
	n     int
	point string
	late  bool // the first message comes last
	done  bool
}

func (g *gathering) Poll(ctx context.Context, cursor string) (list []channel.Inbound, next string, err error) {
	if g.done && g.point == "read" {
		die()
	}
	for !g.done {
		if list, next, err = g.full.Poll(ctx, cursor); err != nil || len(list) >= g.n {
			if g.done = true; g.late {
				list = append(list[1:len(list):len(list)], list[0])
			}
			return list, next, err
		}
		pause(5 * time.Millisecond)
	}
	return g.full.Poll(ctx, cursor)
}

// nthMessage kills the process after a number of messages. Each message is on record in its project
// before the next one is handled.
type nthMessage struct {
	mortalLog
	left *int
}

func (l nthMessage) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "message" {
		if *l.left--; *l.left == 0 {
			die()
		}
	}
	return nil
}

// botProcess runs a bot that the test kills.
func botProcess() int {
	u := &user{own: &world{dir: os.Getenv(botVar)}}
	for _, name := range called {
		u.projects = append(u.projects, &world{dir: u.own.path(name)})
	}
	ch, err := local.Listen(u.own.socket(), local.DefaultLimits())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bot:", err)
		return 1
	}
	left, _ := strconv.Atoi(os.Getenv(dieVar)) // 0 means never
	b, err := u.open(context.Background(), &gathering{full: ch, n: 3, point: os.Getenv(dieVar)}, nil,
		func(o *service.Options) { o.Log = slog.New(nthMessage{left: &left}) })
	if err == nil {
		err = b.Run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "bot:", err)
	return 1
}

// TestProjectsDeathAtEachPoint kills the bot at several points of its work on three messages. The second message
// changes the project. The points 1 to 3 are the handling of these messages. At the point "read", the cursor is
// recorded, but the platform does not know it. Each message is called at most once, in the project for which it was
// written.
func TestProjectsDeathAtEachPoint(t *testing.T) {
	for _, point := range []string{"1", "2", "3", "read"} {
		t.Run(point, func(t *testing.T) {
			u := newUser(t)
			for _, w := range u.projects {
				w.isPaired("alice")
			}
			alice := u.own.phone("alice")
			for i, text := range []string{"the first", "/project shop", "the second"} {
				alice.Say(local.Message{ID: fmt.Sprint("m", i), Text: text})
			}
			victim := u.own.spawn("bot", 0, dieVar+"="+point, botVar+"="+u.own.dir)
			defer victim.kill()
			if err := victim.Wait(); err == nil {
				t.Fatal("the bot did not die")
			}
			if n, want := u.own.types(t, event.ChannelRead), map[bool]int{true: 1}[point == "read"]; n != want {
				t.Errorf("%d cursors are on record, want %d", n, want)
			}
			// A platform may deliver the messages again in another order. A message with a recorded project still goes
			// to this project.
			_, stop := u.serve(func(ch channel.Channel) channel.Channel {
				return &gathering{full: ch.(full), n: 3,
					late: point == "1"}
			}, nil)
			if err := alice.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				alice.outcome(fmt.Sprint("m", i))
			}
			stop()
			// If the bridge died while it sent a message to an agent, nobody knows whether the message was called. Then
			// 0 calls and 1 call are both right.
			if first, second := u.calls("the first"), u.calls("the second"); first[0] > 1 || first[1] > 0 || second[0] > 0 ||
				second[1] > 1 ||
				point == "1" && first[0] != 1 || point != "read" && second[1] != 1 {
				t.Errorf("called %v and %v times", first, second)
			}
			for i, want := range []int{1, 2} { // the change of the project is recorded in the new project
				received, _, _ := u.projects[i].recorded()
				n := 0
				for _, times := range received {
					if n++; times != 1 {
						t.Errorf("project %d received %v", i, received)
					}
				}
				if n != want {
					t.Errorf("project %d received %v", i, received)
				}
			}
		})
	}
}
