package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// toAContact is a table whose target is a contact.
const toAContact = "[[notify]]\nwhen = [\"finished\"]\nto = \"contact:NAME\"\n"

// TestNotifyContact checks that a paired contact gets each cause once, although the bridge is killed and started again.
// A contact that is not paired is a mistake with its row, and its notification fails once.
func TestNotifyContact(t *testing.T) {
	w := newWorld(t)
	w.config(strings.ReplaceAll(toAContact, "NAME", "alice") + strings.ReplaceAll(toAContact, "NAME", "bob"))
	bridge := w.service()
	alice := w.phone("alice", "ask,approve")
	w.run("run", "hello").exits(0)
	alice.hears("A turn is finished in project")
	w.until(1, "notify.sent", `"to":"contact alice"`)
	w.until(1, "notify.failed", `no paired contact is named`, `"final":true`)
	bridge.signal(syscall.SIGKILL)
	bridge.exits(-1)
	bridge = w.start("service")
	w.run("run", "again").exits(0)
	w.until(2, "notify.sent", `"to":"contact alice"`)
	w.until(2, "notify.failed", `"final":true`)
	w.eventually("the second notification is there", func() error { return atLeast(2, alice.stdout.String()) })
	bridge.signal(syscall.SIGTERM)
	bridge.exits(0)
	if n := strings.Count(alice.stdout.String(), "A turn is finished in"); n != 2 {
		t.Errorf("%d notifications: %s", n, alice.stdout.String())
	}
	if strings.Contains(alice.stdout.String(), "You said") {
		t.Error("the notification has the answer")
	}
	list := w.run("notify", "list")
	list.exits(0)
	if out := list.stdout.String(); !strings.Contains(out, "contact alice ") ||
		!strings.Contains(out, `config.toml:4: no paired contact is named "bob"; the contacts are: alice (local:alice`) {
		t.Errorf("%s", out)
	}
	w.run("notify", "test").exits(1)
	w.logged(2, "notify.sent")
	w.logged(2, "notify.failed")
}

// atLeast returns an error if a text has fewer than n notifications about a finished turn.
func atLeast(n int, text string) error {
	if strings.Count(text, "A turn is finished in") < n {
		return errors.New("not yet")
	}
	return nil
}

// TestNotifyTeamWork checks that a worker delivers each notification of its inputs once, also after a restart. Only
// the user's own tables count.
func TestNotifyTeamWork(t *testing.T) {
	w := newWorld(t)
	s, database := hubtest.Shared(t)
	w.env = append(w.env, "PERLICA_TEAM_URL="+s.URL(hubtest.Lead, database),
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere",
		"PATH="+w.home+":"+os.Getenv("PATH"), "SHOWN="+w.home+"/shown")
	w.write(w.home+"/notify-send", "#!/bin/sh\necho \"$@\" >>\"$SHOWN\"\n", 0o700)
	w.write(w.project+"/.perlica_config/config.toml", "[[notify]]\nwhen = [\"question\"]\nto = \"desktop\"\n", 0o600)
	w.run("config", "trust", "--yes").exits(0)
	w.config("[[notify]]\nwhen = [\"finished\"]\nto = \"desktop\"\n")
	w.run("team", "init").exits(0)
	w.run("team", "join", "alice").exits(0)
	for _, input := range []string{"one", "two"} {
		worker := w.start("team", "work")
		w.run("run", "--team", "--input-id", input, "hello").exits(0)
		worker.signal(syscall.SIGTERM)
		worker.exits(0)
	}
	said, err := os.ReadFile(w.home + "/shown")
	if err != nil {
		t.Fatal(err)
	}
	shown := string(said)
	if strings.Count(shown, "A turn is finished in team") != 2 || strings.Contains(shown, "question") ||
		strings.Count(shown, "perlica team inputs") != 2 {
		t.Errorf("%s", shown)
	}
}

// write writes a file and makes its folder.
func (w *world) write(path, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}
