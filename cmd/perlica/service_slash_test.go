//go:build linux

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/kernel/command"
)

// commandsFromAPhone are all slash commands, each with three replies. The first reply is for a contact with only the
// right to ask. The second contact may also approve, and the third may also change settings.
var commandsFromAPhone = []struct{ text, ask, approve, admin string }{
	everybody("/help", "list these commands"),
	everybody("/help cancel", "stop the running turn"),
	everybody("/pending", "No questions are waiting"),
	approvers("/choose 1", "no question waits"),
	approvers("/allow", "no question waits"),
	approvers("/deny", "no question waits"),
	everybody("/cancel", "no turn is under way here"),
	everybody("/cancel 12345678", "12345678"),
	everybody("/again", "hello from"),
	everybody("/attach /etc/passwd", "send the file with the message"),
	everybody("/status", "the event log"),
	everybody("/compact", "this agent has no /compact"),
	everybody("/quit", "nothing to leave"),
	everybody("/resume", "/sessions lists the sessions"),
	admins("/search hello", "perlica log search finds words"),
	everybody("/stop", "no turn is under way here"),
	everybody("/sessions", "@"),
	admins("/sessions --all", "(now)"),
	everybody("/language", "writes to you in English"),
	everybody("/follow", "about your own turns only"),
	{"/follow off", "about your own turns only", "about your own turns only", "about your own turns only"},
	{"/follow on", "needs the right admin", "needs the right admin", "You get a message when a turn"},
	everybody("/queue", "You have no waiting messages"),
	everybody("/withdraw", "You have no waiting messages"),
	everybody("/send 1", "No message waits under that number"),
	everybody("/show", "folded in a terminal only"),
	everybody("/unqueue 1", "No message waits under that number"),
	everybody("/provider", "predictable"),
	everybody("/mode", "ask"),
	everybody("/model", "has no models to choose from"),
	everybody("/config", "has no options"),
	everybody("/policy", "no standing approvals"),
	everybody("/log", "the input:"),
	everybody("/log 1", "message finished:"),
	everybody("/log verify", "as they were written"),
	everybody("/log show 12345678", "12345678"),
	everybody("/thoughts", "not sent to a phone"),
	everybody("/usage", "1 turn"),
	everybody("/budget", "no budget is configured"),
	admins("/flow", "the log has no flow runs"),
	everybody("/schedules", "no schedule is configured"),
	admins("/schedules pause nonesuch", "there is no schedule nonesuch"),
	everybody("/copy", "is for a terminal"),
	everybody("/doctor", "checks passed"),
	everybody("/exit", "nothing to leave"),
	everybody("/exit bypassed", "nothing to leave"),
	everybody("/frobnicate", "there is no command /frobnicate"),
	everybody("/sesion", "did you mean /session?"),
	admins("/save kept by hand", "kept"),
	everybody("/session", "@"),
	admins("/session list --all", "(now)"),
	admins("/session show", "hello from"),
	admins("/session rename other name", "other name"),
	admins("/policy revoke 12345678", "12345678"),
	admins("/mode nonesuch", "nonesuch"),
	admins("/model nonesuch", "nonesuch"),
	admins("/config nonesuch 1", "nonesuch"),
	admins("/session new third", "another session"),
	admins("/session use other name", "another session"),
	admins("/session delete third", "removed from the lists"),
	admins("/provider predictable", "another session"),
	admins("/provider nonesuch", "nonesuch"),
	admins("/discard", "removed from the lists"),
	everybody("/clear", "another session"),
	everybody("//x", "You said: /x"),
}

const forbidden = "you may not do that here"

type fromAPhone = struct{ text, ask, approve, admin string }

func everybody(text, want string) fromAPhone { return fromAPhone{text, want, want, want} }
func approvers(text, want string) fromAPhone { return fromAPhone{text, forbidden, want, want} }
func admins(text, want string) fromAPhone    { return fromAPhone{text, forbidden, forbidden, want} }

// TestCommandsFromAPhone checks that each slash command needs the contact's right.
func TestCommandsFromAPhone(t *testing.T) {
	w := newWorld(t)
	s := w.service()
	for _, c := range command.Commands() {
		used := false
		for _, l := range commandsFromAPhone {
			used = used || strings.Fields(l.text)[0] == "/"+c.Name
		}
		if !used {
			t.Errorf("/%s is not tried", c.Name)
		}
	}
	for _, who := range []struct {
		rights string
		want   func(fromAPhone) string
	}{
		{"ask", func(l fromAPhone) string { return l.ask }},
		{"ask,approve", func(l fromAPhone) string { return l.approve }},
		{"ask,approve,admin", func(l fromAPhone) string { return l.admin }},
	} {
		if who.rights == "ask" { // The session belongs only to this contact.
			boss := w.phone("boss", "ask,approve,admin")
			boss.says("hello from boss")
			boss.hears("You said: hello from boss")
			boss.hearsBack("/save", "kept")
		}
		p := w.phone(strings.ReplaceAll(who.rights, ",", "-"), who.rights)
		p.says("hello from " + who.rights)
		p.hears("You said: hello from " + who.rights)
		for _, l := range commandsFromAPhone {
			p.hearsBack(l.text, who.want(l))
		}
		for _, other := range []string{"hello from boss", "hello from ask\n"} {
			if who.rights == "ask,approve" && strings.Contains(p.stdout.String(), other) {
				t.Errorf("%s is told what others said: %s", who.rights, p.stdout.String())
			}
		}
	}
	s.signal(syscall.SIGTERM)
	s.exits(0)
	if list := w.run("session", "list", "--all").stdout.String(); strings.Contains(list, "bypassed") {
		t.Errorf("a session was named without the right to: %s", list)
	}
}

// hearsBack sends a text and waits for a reply that contains want.
func (p *phone) hearsBack(text, want string) {
	p.w.t.Helper()
	before := len(p.stdout.String())
	p.says(text)
	p.w.eventually(fmt.Sprintf("%s is answered with %q", text, want), func() error {
		if s := p.stdout.String()[before:]; !strings.Contains(s, want) {
			return fmt.Errorf("it is answered with %q", s)
		}
		return nil
	})
}
