//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestChatWithATeam checks that each line is one input of the team, and that all lines are in one session on one
// worker. The chat answers the worker's questions, and Esc stops the worker's turn. No line is lost when the hub is
// away.
func TestChatWithATeam(t *testing.T) {
	w := newWorld(t)
	server, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+server.URL(hubtest.Lead, database))
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)
	worker := w.start("team", "work")

	s := w.terminal(nil, "--team")
	s.expect("a new session with the team team")
	s.expect("new team ❯ \x1b[K")
	s.press("@say One\r")
	s.expect("One\r\n")
	s.finds(`[0-9a-f]{4} alice ❯ \x1b\[K`)
	s.press("@show params\r")
	s.expect("@say One") // The transcript proves that the session is the same.
	s.finds(`alice ❯ \x1b\[K`)

	s.press(question + "\r")
	s.ask("Run it", "make all")
	s.press("y")
	s.expect("permission: allow-once")
	s.finds(`alice ❯ \x1b\[K`)

	s.press("@say Before\x0a@sleep 1h")
	s.finds(`@sleep 1h\x1b\[K`)
	s.press("\r")
	s.expect("Before\r\n")
	s.press("\x1b")
	s.expect("stopped: interrupted")
	s.finds(`alice ❯ \x1b\[K`)

	s.press("/mode ask\r")
	s.expect("/mode is not for a chat with a team")
	s.finds(`alice ❯ \x1b\[K`)
	s.press("/attach\r")
	s.expect("here it is /attach PATH")
	s.press("/exit name\r")
	s.expect("here it is /exit")
	s.finds(`alice ❯ \x1b\[K`)
	s.press("/he\t")
	s.finds(`alice ❯ /help \x1b\[K`)
	s.press("\r")
	s.expect("/clear")
	s.finds(`alice ❯ \x1b\[K`)

	// The chat announces a question of another input. After it was shown, a command answers it.
	const asks = `@ask execute "Build" command="make"`
	const waits = "a question of the team at alice: predictable asks: Build; /pending shows it"
	other := w.start("run", "--team", asks)
	s.expect(waits)
	s.press("/allow\r")
	s.expect("/pending has shown no question that still waits: send /pending")
	s.finds(`alice ❯ \x1b\[K`)
	answer := func(command string) {
		t.Helper()
		s.press("/pending\r")
		s.expect("At the worker alice of the team, in an input of alice")
		name := s.finds(`question ([0-9a-f]{8})`)
		s.expect("make")
		s.press(fmt.Sprintf(command+"\r", name[1]))
		s.expect("Answered")
		s.expect("no longer open at alice: predictable asks: Build")
	}
	answer("/allow %s")
	other.exits(0)
	other = w.start("run", "--team", asks)
	s.expect(waits)
	other.signal(syscall.SIGTERM)
	s.expect("no longer open at alice: predictable asks: Build")
	other.exits(143)
	s.press("\r")
	s.finds(`alice ❯ \x1b\[K`)

	// While the hub cannot be reached, the line moves to the next prompt.
	away := func(is func(string) error) {
		t.Helper()
		if err := is(database); err != nil {
			t.Fatal(err)
		}
	}
	away(server.Away)
	s.press("@say Two\r")
	s.finds(`alice ❯ @say Two\x1b\[K`)
	away(server.Back)
	s.press("\r")
	s.expect("Two\r\n")
	s.finds(`alice ❯ \x1b\[K`)

	// The input was submitted, even if the user does not wait for its end. So the line does not come back.
	s.press("@say Long\x0a@sleep 1h")
	s.finds(`@sleep 1h\x1b\[K`)
	s.press("\r")
	s.expect("Long\r\n")
	away(server.Away)
	s.press("\x03")
	s.expect("the stop has not reached the hub yet")
	s.expect("waiting for the worker; Ctrl-C ends the wait")
	s.press("\x03")
	s.expect("the worker continues the input: perlica team inputs ")
	s.finds(`alice ❯ \x1b\[K`)
	away(server.Back)
	id := regexp.MustCompile(`the worker continues the input: perlica team inputs (\S+)`).FindStringSubmatch(s.text())
	w.run("team", "cancel", id[1]).exits(0)
	s.press("@show params\r")
	s.expect("@say Long")
	s.finds(`alice ❯ \x1b\[K`)
	s.bye()
	ref := regexp.MustCompile(`session [0-9a-f]+ at alice: continue it with: perlica --team -s ([0-9a-f]+)`).
		FindStringSubmatch(s.text())
	if ref == nil {
		t.Fatalf("%q", s.text())
	}

	// The next chat continues the session. It shows the last turns from the copy of the worker's log.
	s = w.terminal(nil, "chat", "--team", "-s", ref[1])
	s.expect("at alice, of the team team")
	s.expect("Two")
	s.finds(`alice ❯ \x1b\[K`)
	s.press("@show params\r")
	s.expect("@say Two")
	s.finds(`alice ❯ \x1b\[K`)
	s.press("/clear\r")
	s.expect("new team ❯ \x1b[K")
	s.press("@say Three\r")
	s.expect("Three\r\n")
	s.finds(`alice ❯ \x1b\[K`)
	s.bye()
	// A chat with an agent on this machine answers the questions of the team's workers, too.
	s = w.chat()
	asked := w.start("run", "--team", asks)
	s.expect(waits)
	answer("/choose %s 1")
	asked.exits(0)
	s.prompt("")
	s.bye()
	s = w.terminal(nil, "--team", "--model", "x")
	s.expect("--model and --team exclude each other")
	s.exits(2)

	worker.signal(syscall.SIGTERM)
	worker.exits(0)
}

// TestTeamAtATerminal checks the progress of a large submission, and the notice that no worker has taken an input. A
// member without the right to answer must not see the question.
func TestTeamAtATerminal(t *testing.T) {
	w := newWorld(t)
	server, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+server.URL(hubtest.Lead, database))
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)

	s := w.terminal(nil, "run", "--team", "--input-id", "a", "@say Taken")
	s.expect("waiting for a worker")
	s.expect("no worker has taken it yet; 'perlica team workers' shows who serves which projects and labels")
	worker := w.start("team", "work")
	s.expect("Taken")
	s.exits(0)

	inputs := filepath.Join(t.TempDir(), "inputs.ndjson")
	if err := os.WriteFile(inputs, []byte(strings.Repeat(`{"text": "x", "labels": ["none"]}`+"\n", 2500)),
		0o600); err != nil {
		t.Fatal(err)
	}
	s = w.terminal(nil, "team", "submit", "-f", inputs)
	s.finds(`submitted █{8,16}░{4,12} [12]000 of 2500`)
	s.expect("2500 new, 0 there before, 0 under the id of another input")
	s.exits(0)

	many := filepath.Join(t.TempDir(), "many.ndjson")
	if err := os.WriteFile(many, []byte(strings.Repeat(`{"text": "x", "labels": ["none"]}`+"\n", 40_000)),
		0o600); err != nil {
		t.Fatal(err)
	}
	s = w.terminal(nil, "team", "submit", "-f", many)
	s.expect("submitted ")
	s.pressNow("\x03")
	s.finds(`[0-9]+ new, 0 there before`)
	s.finds(`interrupted: [0-9]+ of 40000 inputs were handed over`)
	s.exits(130)

	// The member bob may ask but may not approve.
	server.SQL(t, database, "CREATE ROLE terminal_bob LOGIN IN ROLE perlica_member")
	alice := w.env
	w.env = append(slices.Clone(alice), "PERLICA_HOME="+t.TempDir(),
		"PERLICA_TEAM_URL="+server.URL("terminal_bob", database))
	w.run("team", "join", "bob").exits(0)
	bob := w.env
	w.env = alice
	key := regexp.MustCompile(`(?m)^bob .*(perlica/team\+\S+)`).FindStringSubmatch(w.run("team",
		"confirm").stdout.String())
	if key == nil {
		t.Fatal("bob does not ask to join")
	}
	w.run("team", "confirm", "bob", "--key", key[1], "--rights", "ask").exits(0)
	w.env = bob
	s = w.terminal(nil, "run", "--team", "--input-id", "b", question)
	s.expect("it waits for a member with the right to approve")
	s.press("y")
	w.env = alice
	list := w.run("team", "pending")
	name := regexp.MustCompile(`question ([0-9a-f]+) of alice`).FindStringSubmatch(list.stdout.String())
	if name == nil {
		t.Fatalf("%q: %q", list.stdout.String(), s.text())
	}
	w.run("team", "pending", "choose", name[1], "1").exits(0)
	s.expect("permission: allow-once")
	s.exits(0)
	if strings.Contains(s.text(), "y yes") || strings.Contains(s.text(), "may not approve") {
		t.Errorf("%q", s.text())
	}

	// If the hub does not reply, Ctrl-C ends the command at once, because nothing was submitted.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	called := make(chan net.Conn, 1)
	go func() { // The goroutine ends with the listener.
		if conn, err := l.Accept(); err == nil {
			called <- conn
		}
	}()
	w.env = append(slices.Clone(alice), fmt.Sprintf("PERLICA_TEAM_URL=postgres://u@%s/t?sslmode=disable", l.Addr()))
	s = w.terminal(nil, "run", "--team", "@say x")
	defer (<-called).Close()
	s.press("\x03")
	s.expect("interrupted")
	s.exits(130)
	w.env = alice

	worker.signal(syscall.SIGTERM)
	worker.exits(0)
}
