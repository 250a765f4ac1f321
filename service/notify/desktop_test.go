package notify

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestTerminal checks the bytes for a terminal: one sequence, one bell, and no control character of a text.
func TestTerminal(t *testing.T) {
	n := note{Title: "A; B \x1b]0;x\x07", Content: hostile, Lines: []string{"To see it: perlica pending"}}
	for env, begin := range map[string]string{
		"TERM=xterm-kitty": "\x1b]9;A; B ", "TERM=foot": "\x1b]777;notify;A, B ",
		"TERM=xterm\nVTE_VERSION=7600": "\x1b]777;notify;A, B ", "TERM=rxvt-unicode-256color": "\x1b]777;notify;A, B ",
	} {
		var out strings.Builder
		target := desktopTarget(strings.Split(env, "\n"), Options{Terminal: &out})
		if _, err := target.send(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, "\x1b\\\a") || strings.Count(got, "\x1b") != 2 ||
			strings.Count(got, "\a") != 1 || strings.ContainsAny(got, "\r\n\u202e") {
			t.Errorf("%s: %q", env, got)
		}
	}
	if target := desktopTarget([]string{"TERM=dumb"}, Options{Terminal: &strings.Builder{}}); target.send != nil ||
		target.Elsewhere == "" {
		t.Error("a dumb terminal is a target")
	}
}

// TestDesktopProgram checks the arguments and the errors of the program of the desktop. The markup is escaped, and a
// title that begins with a dash is not an option.
func TestDesktopProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the stand-in is the program of Linux")
	}
	dir := t.TempDir()
	for script, want := range map[string]string{
		"for a; do echo \"[$a]\"; done": "[--app-name=Perlica] [--urgency=normal] [--] [-t] [&lt;b&gt; &amp; x]",
		"echo no bus >&2; exit 1":       "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		target := desktopTarget([]string{"DBUS_SESSION_BUS_ADDRESS=x"}, Options{})
		got, err := target.send(t.Context(), note{Title: "-t", Lines: []string{"<b> & x"}})
		if got != want || (err != nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "no bus") {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}
