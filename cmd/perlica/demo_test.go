//go:build linux

package main

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// demoAt starts the demonstration at a terminal. The demonstration makes its files in the folder "temp". The
// function "next" begins the next step.
func demoAt(t *testing.T) (w *world, s *terminal, temp string, next func()) {
	t.Helper()
	w, temp = newWorld(t), t.TempDir()
	w.env = append(w.env, "TMPDIR="+temp, "NO_COLOR=1")
	s = w.terminalOf(80, 50, nil, "demo")
	return w, s, temp, func() {
		t.Helper()
		s.expect("Enter goes on")
		s.press("\r")
	}
}

// nothingLeft checks that the demonstration left no process and no file.
func (w *world) nothingLeft(temp string) {
	w.t.Helper()
	w.gone()
	for _, dir := range []string{temp, w.project, w.home + "/.perlica/state"} {
		files, err := os.ReadDir(dir)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range files {
			if f.Name() != "sandbox-offered" { // newWorld makes this file.
				w.t.Errorf("%s has %s", dir, f.Name())
			}
		}
	}
}

// TestDemo checks that a person can play the demonstration with the keys y and Enter. The demonstration must leave
// no file and no process, and README.md must show its output.
func TestDemo(t *testing.T) {
	w, s, temp, next := demoAt(t)
	next()
	s.expect("this input was called before")
	next()
	s.ask("asks: New price")
	s.press("y")
	s.expect("permission: allow-once")
	next()
	s.expect("the outcome is unknown")
	next()
	s.expect("DAMAGED forged.db")
	next()
	s.expect("PROVEN decision.proof")
	s.exits(0)
	w.nothingLeft(temp)

	shown := regexp.MustCompile("(?s)```text\n\\$ perlica demo\n(.*?)```").FindStringSubmatch(documents(t)["README.md"])
	if shown == nil {
		t.Fatal("README.md has no demonstration")
	}
	var rows []string
	for row := range strings.Lines(s.drawn().All()) {
		rows = append(rows, strings.TrimRight(row, " \n"))
	}
	if got := veil(strings.Join(rows, "\n")); !asShown(shown[1]).MatchString(got) {
		t.Errorf("README.md does not show this:\n%s", got)
	}
}

// TestDemoStopped checks that Ctrl-C and a signal end the demonstration, and that no file and no process stays.
func TestDemoStopped(t *testing.T) {
	question := func(s *terminal, next func()) {
		next()
		next()
		s.ask("asks: New price")
	}
	for name, stop := range map[string]func(s *terminal, next func()) (code int){
		"Ctrl-C between two steps": func(s *terminal, _ func()) int {
			s.expect("Enter goes on")
			s.press("\x03")
			return 130
		},
		"Ctrl-C at the question": func(s *terminal, next func()) int {
			question(s, next)
			s.press("\x03")
			return 130
		},
		"SIGTERM at the question": func(s *terminal, next func()) int {
			question(s, next)
			s.signal(syscall.SIGTERM)
			return 1
		},
		"SIGHUP twice at the question": func(s *terminal, next func()) int {
			question(s, next)
			s.signal(syscall.SIGHUP)
			s.signal(syscall.SIGHUP)
			return 1
		},
		"SIGHUP between two steps": func(s *terminal, _ func()) int {
			s.expect("Enter goes on")
			s.signal(syscall.SIGHUP)
			return 1
		},
		"closed terminal at the question": func(s *terminal, next func()) int {
			question(s, next)
			if err := s.pty.Close(); err != nil {
				s.w.t.Fatal(err)
			}
			return 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, temp, next := demoAt(t)
			s.exits(stop(s, next))
			w.nothingLeft(temp)
		})
	}
}
