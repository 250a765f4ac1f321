//go:build linux

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// listedSession is a session in the output of 'perlica session list --json'.
type listedSession struct {
	ID, Title string
	Ephemeral bool
}

// listed returns the sessions that 'perlica session list' prints.
func (w *world) listed(args ...string) (list []listedSession) {
	w.t.Helper()
	j := w.run(append([]string{"session", "list", "--json"}, args...)...)
	j.exits(0)
	if err := json.Unmarshal([]byte(j.stdout.String()), &list); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestChatsAreListed checks that the list shows a chat with a turn under its first line. It does not show an empty
// chat and the session of a single run.
func TestChatsAreListed(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.bye()
	s = w.chat()
	s.send("the first line", "You said: the first line")
	s.bye()
	w.run("run", "a run").exits(0)
	list := w.listed()
	if len(list) != 1 || list[0].Title != "the first line" || list[0].Ephemeral {
		t.Errorf("%+v", list)
	}
	if all := w.listed("--all"); len(all) != 3 {
		t.Errorf("%+v", all)
	}
}

// TestChatResume searches the list of sessions by titles and texts and chooses a session. The chat must show the
// last turns from the record.
func TestChatResume(t *testing.T) {
	w := newWorld(t)
	for _, topic := range []string{"apples", "@usage 5 100 cost=0.25USD\x0apears"} {
		s := w.chat()
		s.press("talk of " + topic + "\r")
		s.prompt("")
		s.send("more, of the "+strings.ToUpper(topic[len(topic)-5:]), "You said: more")
		s.bye()
	}
	s := w.terminal(nil, "--resume")
	s.finds("go on with ❯ ")
	s.expect("2 of them")
	if text := s.text(); strings.Contains(text, "⟨") {
		t.Errorf("the picker spells out its own blanks:\n%s", text)
	}
	s.press("apples")
	s.expect("go on with ❯ apples")
	s.expect("1 of them")
	s.press("\r")
	s.expect("2 turns")
	s.expect("❯ talk of apples")
	s.expect("You said: talk of apples")
	s.expect("You said: more, of the PPLES")
	s.prompt("")
	s.press("/search pples\r")
	s.expect(`only this session has "pples" in it`)
	s.prompt("")
	s.press("/search cherries\r")
	s.expect(`no session has "cherries" in its title or in its texts`)
	s.prompt("")
	s.press("/resume\r")
	s.expect("1 of them") // The session of this chat is not in the list.
	s.press("\x1b")
	s.expect("no session was chosen")
	s.prompt("")
	s.press("/resume\r")
	s.expect("1 of them")
	s.press("\x1b[B\x1b[A\r")
	s.expect("talk of ")
	s.prompt("")
	s.bye()

	s = w.chat()
	s.press("/search pples\r")
	s.expect("go on with ❯ pples")
	s.expect("1 of them")
	s.press("\r")
	s.expect("talk of apples")
	s.prompt("")
	s.bye()

	// The search also finds a word that only the text contains.
	s = w.terminal(nil, "--resume")
	s.expect("2 of them")
	s.press("pples ")
	s.expect("1 of them")
	s.press("\x03")
	s.exits(1)
	s.shows("no session was chosen")

	id := w.listed()[0].ID
	s = w.terminal(nil, "--resume", id)
	s.prompt("")
	s.bye()
	w.audit()
}

// TestRunInTheSessionOfARun checks that -s also accepts the id of a run.
func TestRunInTheSessionOfARun(t *testing.T) {
	w := newWorld(t)
	j := w.run("run", "--json", "first")
	j.exits(0)
	var res struct {
		Run     string `json:"run_id"`
		Session string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(j.stdout.String()), &res); err != nil {
		t.Fatal(err)
	}
	j = w.run("run", "--json", "-s", res.Run, "second")
	j.exits(0)
	if !strings.Contains(j.stdout.String(), res.Session) {
		t.Errorf("%s is not in session %s", j.stdout.String(), res.Session)
	}
}

// TestChoicesAreTakenUpAgain chooses a mode in a session and opens the session again. The chat must set and report
// the mode. If the agent no longer offers the mode, the chat must say so.
func TestChoicesAreTakenUpAgain(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.send("hello", "You said: hello")
	s.press("/mode auto\r")
	s.expect("The agent is in the mode auto")
	s.expect("predictable auto ❯ \x1b[K")
	s.bye()
	w.logged(1, "session.configured", `{"mode":"auto"}`)

	s = w.terminal(nil, "-c")
	s.expect("set again as chosen in this session, as far as the agent offers it: mode auto")
	s.expect("predictable auto ❯ \x1b[K")
	s.bye()
	j := w.run("run", "-c", "again")
	j.exits(0)
	j.says("mode auto")

	w.scripted(
		"#\n[initialize]\n@unset agentCapabilities.loadSession\n@unset " +
			"agentCapabilities.sessionCapabilities\n[session/new]\n@unset modes")
	s = w.terminal(nil, "-c")
	s.expect("the agent no longer offers the mode auto")
	s.bye()
	j = w.run("run", "-c", "once more")
	j.exits(0)
	j.says("warning: earlier choice lost: the agent no longer offers the mode auto")
	j = w.run("run", "-c", "--mode", "none", "once more")
	j.exits(0)
	if said := j.stderr.String(); strings.Contains(said, "auto") {
		t.Errorf("with a mode of its own it says %q", said)
	}
	w.audit()
}
