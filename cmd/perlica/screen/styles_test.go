package screen

import (
	"os"
	"path/filepath"
	"testing"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestStylesDecision(t *testing.T) {
	for _, tt := range []struct {
		env      func(string) string
		terminal bool
		want     bool
	}{
		{env(), true, true},
		{env(), false, false},
		{env("TERM", "dumb"), true, false},
		{env("TERM", "xterm"), true, true},
		{env("NO_COLOR", "1"), true, false},
		{env("NO_COLOR", ""), true, true},
		{env("NO_COLOR", "1", "CLICOLOR_FORCE", "1"), true, false},
		{env("CLICOLOR_FORCE", "1"), false, true},
		{env("CLICOLOR_FORCE", "1", "TERM", "dumb"), false, true},
		{env("CLICOLOR_FORCE", "0"), false, false},
		{env("CLICOLOR_FORCE", "0"), true, true},
		{env("CLICOLOR", "0"), true, false},
	} {
		if got := NewStyles(tt.env, tt.terminal).on; got != tt.want {
			t.Errorf("%q %q %q, terminal %v: %v", tt.env("NO_COLOR"), tt.env("CLICOLOR_FORCE"), tt.env("TERM"),
				tt.terminal, got)
		}
	}
}

func TestStyles(t *testing.T) {
	var off Styles
	on := Styles{on: true}
	if got := off.Bold("x") + off.Red("y"); got != "xy" {
		t.Errorf("off: %q", got)
	}
	if got, want := on.Bold(on.Red("x")+"y"), "\x1b[1m\x1b[31mx\x1b[39my\x1b[22m"; got != want {
		t.Errorf("on: %q, want %q", got, want)
	}
	if got := on.Dim(""); got != "" {
		t.Errorf("nothing, dimmed: %q", got)
	}
}

func TestFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || IsTerminal(nil) || TerminalWidth(f) != 0 || TerminalWidth(nil) != 0 {
		t.Error("a file is taken for a terminal")
	}
	if StatusWidth(f, env()) != nil {
		t.Error("a status line in a file")
	}
}
