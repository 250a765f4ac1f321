//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
)

// recovers starts the next run. It must report the interrupted run once and write the outcome of that run once.
func (w *world) recovers(calls int, parts ...string) {
	w.t.Helper()
	w.gone() // The agent of the killed perlica ends, too.
	const said = "an earlier run was cut off; its outcome is unknown and nothing was sent again: perlica log show "
	j := w.run("run", "hello")
	j.exits(0)
	j.says(said)
	if got := j.stdout.String(); got != "You said: hello" {
		w.t.Errorf("stdout %q", got)
	}
	j = w.run("run", "-q", "hello")
	j.exits(0)
	if got := j.stderr.String(); got != "" {
		w.t.Errorf("stderr %q", got)
	}
	w.logged(1, "llm.outcome_unknown", append(parts, `"noticed_by":"recovery"`)...)
	w.logged(1, "llm.outcome_unknown")
	if n := w.prompts(); n != calls+2 {
		w.t.Errorf("%d calls, want %d", n, calls+2)
	}
	w.audit()
}

// TestKilled kills perlica at several points of a run. The next start must report the true outcome.
func TestKilled(t *testing.T) {
	t.Run("after the intent", func(t *testing.T) {
		w := newWorld(t)
		j := w.start("run", "--input-id=i", "@hang")
		w.until(1, "llm.requested")
		j.signal(syscall.SIGKILL)
		j.wait()
		w.gone()
		sent := w.prompts() // The prompt may be recorded already.
		w.recovers(sent)
		w.run("run", "--input-id=i", "@hang").exits(6)
	})
	t.Run("during the stream", func(t *testing.T) {
		w := newWorld(t)
		text := w.script("@say begun", "@stream 1000000 100")
		j := w.start("run", "--input-id=i", text)
		w.until(100, "acp.notification.received")
		j.signal(syscall.SIGKILL)
		j.wait()
		w.recovers(1, "the prompt was being sent or was already sent", `"text":"begun000000000`)
		k := w.run("run", "--input-id=i", text)
		k.exits(6)
		if !strings.HasPrefix(k.stdout.String(), "begun000000000") {
			t.Errorf("stdout %.100q", k.stdout.String())
		}
	})
	t.Run("while asking", func(t *testing.T) {
		w := newWorld(t)
		j := w.start("run", "--wait-permissions=10m", `@ask execute "Run it" command="make" count=2`)
		w.until(2, "interaction.requested")
		j.signal(syscall.SIGKILL)
		j.wait()
		w.recovers(1)
		w.logged(2, "interaction.lapsed", "asker_died")
		w.logged(2, "interaction.resolved", "asker_died")
		w.logged(0, "acp.reply.sent")
	})
	t.Run("between the answer and its outcome", func(t *testing.T) {
		w := newWorld(t)
		w.config(closeHangs)
		j := w.start("run", "--provider=closehangs", "hello")
		w.until(1, "acp.response.received", "stopReason")
		j.signal(syscall.SIGKILL)
		j.wait()
		if w.count("llm.responded") > 0 {
			t.Skip("too late")
		}
		w.recovers(1, "the agent's last answer is on record", `"text":"You said: hello"`)
	})
	t.Run("after the outcome", func(t *testing.T) {
		w := newWorld(t)
		w.config(closeHangs)
		j := w.start("run", "--input-id=i", "--provider=closehangs", "hello")
		w.until(1, "llm.responded")
		j.signal(syscall.SIGKILL)
		j.wait()
		w.gone()
		j = w.run("run", "--input-id=i", "hello")
		j.exits(0)
		if got := j.stdout.String(); got != "You said: hello" {
			t.Errorf("stdout %q", got)
		}
		w.logged(0, "llm.outcome_unknown")
		w.audit()
	})
}

const closeHangs = `[providers.closehangs]
adapter.command = "perlica"
adapter.args = ["agent", "predictable", "--scenario", "[session/close]\n@hang"]
`

// wiretap is an agent that copies its input to the file wire.
const wiretap = `--agent=sh -c 'tee -a "$HOME/wire" | perlica agent predictable'`

// unsent fails if the file wire has a prompt.
func (w *world) unsent() {
	w.t.Helper()
	wire, err := os.ReadFile(filepath.Join(w.home, "wire"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	if strings.Contains(string(wire), "session/prompt") {
		w.t.Errorf("a prompt was sent: %s", wire)
	}
	w.gone()
}

// refuses starts a run. The run must end with exit code 7, print the words, and send nothing.
func (w *world) refuses(words ...string) {
	w.t.Helper()
	j := w.run("run", "--json", wiretap, "hello")
	j.exits(7)
	for _, text := range words {
		j.says(text)
	}
	if out := j.stdout.String(); !strings.Contains(out, `"error_type":"record"`) || !strings.Contains(out, `"calls":0`) {
		w.t.Errorf("stdout %q", out)
	}
	w.unsent()
}

// TestUnusableLog checks that no prompt is sent if the log cannot be written.
func TestUnusableLog(t *testing.T) {
	t.Run("foreign", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		if err := os.WriteFile(logFile(w.project), []byte(strings.Repeat("my notes\n", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		w.refuses("not an event log of Perlica", "hint: to start a new log, move the file, its .anchor and its .intents away")
	})
	t.Run("another database", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		remove(t, logFile(w.project))
		w.sql(logFile(w.project), `CREATE TABLE notes (t TEXT)`)
		w.refuses("not an event log of Perlica")
	})
	t.Run("newer", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		w.sql(logFile(w.project), `PRAGMA user_version = 99`)
		w.refuses("written by another version of Perlica", "hint: use the version of Perlica that wrote it")
	})
	t.Run("corrupt", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		f, err := os.OpenFile(logFile(w.project), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		junk := []byte(strings.Repeat("\xa5", int(info.Size())-8192))
		if _, err := f.WriteAt(junk, 8192); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		w.refuses("damaged", "hint: to start a new log, move the file, its .anchor and its .intents away")
	})
	t.Run("cut off", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		if err := os.Truncate(logFile(w.project), 8192+4096); err != nil {
			t.Fatal(err)
		}
		w.refuses("damaged")
	})
	t.Run("a file in place of the folder", func(t *testing.T) {
		w := newWorld(t)
		if err := os.MkdirAll(filepath.Join(w.project, ".perlica_config", "contexts"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.project, ".perlica_config", "contexts", "default"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.refuses()
	})
	t.Run("a folder in place of the file", func(t *testing.T) {
		w := newWorld(t)
		if err := os.MkdirAll(logFile(w.project), 0o700); err != nil {
			t.Fatal(err)
		}
		w.refuses()
	})
	t.Run("locked", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes the 10 s that a writer waits")
		}
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		release := w.lock(logFile(w.project))
		w.refuses("another process has locked the event log", "hint: another program")
		release()
		w.run("run", "hello").exits(0)
		w.audit()
	})
	t.Run("locked for a moment", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		release := w.lock(logFile(w.project))
		j := w.start("run", "again")
		j.opensLog()
		release()
		j.exits(0)
		w.audit()
	})
	t.Run("limited", func(t *testing.T) { // limited by RLIMIT_FSIZE
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		cmd := w.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -f 8; exec perlica run "$0" hello`, wiretap}
		j := w.startCmd(cmd)
		j.exits(7)
		j.says("could not be made larger: no room on the disk, or a limit on the size of files")
		j.says("hint: see that the disk has room")
		w.unsent()
		w.run("run", "hello").exits(0)
		w.audit()
	})
	t.Run("no room for the anchor", func(t *testing.T) {
		w := newWorld(t)
		w.run("run", "hello").exits(0)
		name := anchor.Path(logFile(w.project))
		line, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// The anchor gets so large that perlica cannot write to it within the limit below. The log stays small
		// enough.
		if err := os.WriteFile(name, bytes.Repeat(line, 1<<20/len(line)+1), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := w.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `ulimit -f 1000; exec perlica run hello`}
		j := w.startCmd(cmd)
		j.exits(0)
		j.says("warning: checkpoint not anchored: eventlog: anchor: the disk is full")
		j.says("after you free space, run 'perlica log checkpoint'")
		if got := j.stdout.String(); got != "You said: hello" {
			t.Errorf("stdout %q", got)
		}
		w.audit()
	})
}

// TestDisk fills the disk or makes it read-only. The fault happens before the prompt or during a turn.
func TestDisk(t *testing.T) {
	t.Run("full", func(t *testing.T) {
		w := newWorld(t)
		remount := w.tmpfs("2m")
		w.run("run", "hello").exits(0)
		fill := filepath.Join(w.project, ".perlica_config", "ballast")
		fillUp(t, fill)
		w.refuses("no room on the disk", "hint: see that the disk has room")
		remove(t, fill)
		remount("ro,size=2m")
		w.refuses("the event log cannot be written: read-only file system", "hint: mount the file system for writing")
		remount("rw,size=2m")
		w.run("run", "hello").exits(0)
		w.audit()
	})
	t.Run("fresh and full", func(t *testing.T) {
		w := newWorld(t)
		w.tmpfs("2m")
		fillUp(t, filepath.Join(w.project, ".perlica_config", "ballast"))
		w.refuses("hint: see that the disk has room")
	})
	for name, turn := range map[string][]string{
		"full in mid-turn": {"@spawn 10m daemon", "@say begun", "@stream 1000000 500"},
		"full by one line": {"@spawn 10m daemon", "@say begun", "@sleep 100ms", "@stream 1 2000000", "@hang"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			remount := w.tmpfs("3m")
			w.run("run", "hello").exits(0)
			fill := filepath.Join(w.project, ".perlica_config", "ballast")
			if err := os.WriteFile(fill, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			text := w.script(turn...)
			j := w.start("run", "--json", "--input-id=i", text)
			j.exits(6)
			if out := j.stdout.String(); !strings.Contains(out, `"outcome":"outcome_unknown"`) ||
				!strings.Contains(out, `"error_type":"record"`) {
				t.Errorf("stdout %.500q", out)
			}
			j.says("warning: disk low: only ")
			j.says("the outcome is unknown")
			j.says("the disk is full")
			j.says("hint: the prompt may have been carried out; Perlica does not send it again")
			w.gone()
			remove(t, fill)
			remount("rw,size=64m")
			w.recovers(2)
			w.run("run", "--input-id=i", text).exits(6)
		})
	}
}

// TestSlowDisk delays every sync for longer than the turn. The answer must then arrive late, but correct and once.
func TestSlowDisk(t *testing.T) {
	w := newWorld(t)
	w.run("run", "hello").exits(0)
	trace := filepath.Join(w.home, "trace")
	slow := func(args ...string) *job {
		cmd := w.command()
		strace := []string{"strace", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync", "-e",
			"inject=fsync,fdatasync:delay_exit=150000"}
		path, err := exec.LookPath(strace[0])
		if err != nil {
			t.Skip("NOT TESTED: a run on a slow disk: strace is not installed")
		}
		cmd.Path, cmd.Args = path, append(strace, args...)
		j := w.startCmd(cmd)
		j.wait()
		return j
	}
	if slow("true").cmd.ProcessState.ExitCode() != 0 {
		t.Skip("NOT TESTED: a run on a slow disk: strace may not trace")
	}
	text := w.script("@stream 1500 2000", `@ask execute "Run it" command="make"`, "@say done")
	j := slow("perlica", "run", "--input-id=i", text)
	j.exits(5) // No person was there to answer the question.
	if got := j.stdout.String(); !strings.HasSuffix(got, "done") || len(got) < 1500*2000 {
		t.Errorf("%d bytes, which end with %.100q", len(got), got[max(len(got)-100, 0):])
	}
	if got := j.stderr.String(); strings.Contains(got, "warning") {
		t.Errorf("stderr %q", got)
	}
	if seen, err := os.ReadFile(trace); err != nil || !strings.Contains(string(seen), "(DELAYED)") {
		t.Errorf("no sync was slow: %v", err)
	}
	if again := w.run("run", "--input-id=i", text).stdout.String(); again != j.stdout.String() {
		t.Error("the recorded answer is another one than was shown")
	}
	w.logged(2, "llm.requested")
	if n := w.prompts(); n != 2 {
		t.Errorf("%d calls", n)
	}
	w.audit()
}
