//go:build linux

package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// service starts a bridge without paired contacts and waits until it has shown its own code. Otherwise this code
// could replace a requested one at the same moment.
func (w *world) service() *job {
	w.t.Helper()
	s := w.start("service")
	s.expect("no one is paired")
	return s
}

// phone is a process of 'perlica phone' for a paired contact.
type phone struct {
	*job
	in io.Writer
}

func (w *world) phone(name string, rights ...string) *phone {
	w.t.Helper()
	cmd := w.command("phone", "--as", name)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p := &phone{w.startCmd(cmd), in}
	pair := w.run("service", "pair", "--rights="+strings.Join(append(rights, "ask,approve")[:1], ""))
	pair.exits(0)
	p.says(strings.TrimSpace(pair.stdout.String()))
	p.hears("You are paired")
	return p
}

func (p *phone) says(text string) {
	p.w.t.Helper()
	if _, err := io.WriteString(p.in, text+"\n"); err != nil {
		p.w.t.Fatal(err)
	}
}

// hears waits until the phone shows the text.
func (p *phone) hears(text string) {
	p.w.t.Helper()
	p.w.eventually(fmt.Sprintf("the phone shows %q", text), func() error {
		if s := p.stdout.String(); !strings.Contains(s, text) {
			return fmt.Errorf("it shows %q", s)
		}
		return nil
	})
}

// TestServiceStops sends SIGTERM to the bridge. systemd must be told at once, and its watchdog must get reports
// while the running turn ends.
func TestServiceStops(t *testing.T) {
	w := newWorld(t)
	sd := w.systemd().listen()
	s := w.service()
	for _, early := range sd.expect("READY=1", 1) {
		if early != "WATCHDOG=1" {
			t.Errorf("%s came before it was ready", early)
		}
	}
	alice := w.phone("alice") // The phone shows that the bridge serves.
	alice.says(question)
	alice.hears("make all")
	sd.expect("WATCHDOG=1", 5)
	s.signal(syscall.SIGTERM)
	sd.expect("STOPPING=1", 1)
	sd.expect("WATCHDOG=1", 5)
	w.run("pending", "deny").exits(0)
	s.exits(0)
	alice.hears("permission: reject")
	w.logged(1, "service.stopped", "in order")
}

// TestServiceIsStoppedTwice checks that the bridge does not wait after the second signal. The next start must report
// the true outcome.
func TestServiceIsStoppedTwice(t *testing.T) {
	w := newWorld(t)
	s := w.service()
	alice := w.phone("alice")
	alice.says(question)
	alice.hears("make all")
	s.signal(syscall.SIGTERM)
	s.expect("stopping")
	s.signal(syscall.SIGTERM)
	s.exits(-1)
	again := w.start("service")
	alice.hears("the bridge died while it was open")
	alice.hears("is unknown")
	again.signal(syscall.SIGINT)
	again.exits(0)
	w.logged(1, "service.stopped")
}

// TestServiceGrace checks that the bridge cancels a turn that does not end in time, and tells the contact.
func TestServiceGrace(t *testing.T) {
	w := newWorld(t)
	w.config("[service]\ngrace = '100ms'\n")
	s := w.service()
	alice := w.phone("alice")
	alice.says(`@say half an answer\n`)
	alice.hears("half an answer")
	alice.says("@hang")
	w.until(2, "acp.request.sent", "session/prompt")
	s.signal(syscall.SIGTERM)
	s.exits(0)
	alice.hears("The turn was stopped: the bridge was told to stop")
}

// TestServiceReloads checks that SIGHUP makes the bridge read its configuration again. A configuration with mistakes
// has no effect.
func TestServiceReloads(t *testing.T) {
	w := newWorld(t)
	w.config("[service]\nack = 'first'\n")
	s := w.service()
	alice := w.phone("alice")
	alice.says("one")
	alice.hears("first")
	w.config("[service]\nack = 'second'\n")
	s.signal(syscall.SIGHUP)
	s.expect("was read again")
	alice.says("two")
	alice.hears("second")
	w.config("[service]\nack = 'third\n")
	s.signal(syscall.SIGHUP)
	s.expect("was not read again")
	alice.says("three")
	alice.hears("You said: three")
	if n := strings.Count(alice.stdout.String(), "second"); n != 1+1 {
		t.Errorf("it was acknowledged otherwise: %s", alice.stdout.String())
	}
	s.signal(syscall.SIGTERM)
	s.exits(0)
}

// TestServiceScreen checks that the view shows paired contacts, running turns and questions. Each new view must
// replace the old one completely, also on a terminal that becomes narrower.
func TestServiceScreen(t *testing.T) {
	w := newWorld(t)
	s := w.terminal(func(c *exec.Cmd) { c.Env = append(c.Env, "NO_COLOR=1") }, "service")
	s.expect("  pairing   send ")
	alice := w.phone("alice")
	s.expect("  contact   alice (local): ask, approve")
	if err := pty.Setsize(s.pty, &pty.Winsize{Rows: 20, Cols: 50}); err != nil {
		t.Fatal(err)
	}
	alice.says(`@ask execute "Run it` + strings.Repeat(" wide", 40) + `" command="make all"`)
	s.expect("  question  ")
	s.expect("Run it")
	s.expect("  running   alice (local): ")
	s.press("\x03")
	s.expect("\r\x1b[") // The view is drawn again after the echo of the key.
	s.expect("  stopping")
	w.run("pending", "deny").exits(0)
	s.exits(0)
	all := strings.ReplaceAll(s.text(), "\x1b[K\x1b[C\x1b[J\r", "\x1b[J") // This is screen.ClearBelow.
	if sgr.MatchString(all) {
		t.Errorf("colors in spite of NO_COLOR: %q", all)
	}
	// Each view removes the previous view line by line. A view that was drawn before the terminal became narrower may
	// have more lines now.
	for _, part := range strings.SplitAfter(all[strings.Index(all, "running"):], "\n") {
		if n := len(strings.TrimRight(part, "\r\n")); n > 49+len("\x1b[10A\x1b[J") {
			t.Errorf("a line of %d on a terminal of 50: %q", n, part)
		}
	}
	lines, wrapped := 0, 0
	for rest := all; rest != ""; {
		up := 0
		at := strings.Index(rest, "\x1b[J")
		if at < 0 {
			lines += strings.Count(rest, "\n")
			break
		}
		head := rest[:at]
		escape := strings.LastIndex(head, "\x1b[")
		for part := range strings.Lines(head[:escape]) {
			if strings.HasSuffix(part, "\n") {
				lines++
				wrapped += max(len(strings.TrimRight(part, "\r\n"))-1, 0) / 50
			}
		}
		if !strings.HasSuffix(head[:escape], "\r") {
			t.Errorf("it is not painted over from the beginning of the line: %q", head[escape-5:])
		}
		if _, err := fmt.Sscanf(head[escape:], "\x1b[%dA", &up); err != nil || up != lines && up != lines+wrapped {
			t.Fatalf("%d lines are painted over, %d were shown: %q", up, lines, all)
		}
		lines, wrapped, rest = 0, 0, rest[at+len("\x1b[J"):]
	}
	if lines != 0 {
		t.Errorf("%d lines are left: %q", lines, all)
	}
}

// TestServiceWithoutItsTerminal closes the bridge's terminal. SIGHUP must then end the bridge.
func TestServiceWithoutItsTerminal(t *testing.T) {
	w := newWorld(t)
	p, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	cmd := w.command("service")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s := w.startCmd(cmd)
	_ = tty.Close() // The child has its own copy.
	w.until(1, "service.pairing_opened")
	if err := p.Close(); err != nil { // Nobody reads from the terminal, so closing it takes effect at once.
		t.Fatal(err)
	}
	s.exits(0)
	w.logged(1, "service.stopped", "in order")
}
