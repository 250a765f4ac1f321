package shell

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	oracleCommands = flag.Uint64("oracle", 300, "how many commands TestOracle runs in a throwaway root (Linux)")
	oracleSeed     = flag.Uint64("oracle-seed", 1, "which commands these are")
)

// TestOracle compares verdicts with the true effects of random commands in bash, in a throwaway root directory. A
// command that changes files outside the working directory must not be Ordinary. A command that removes all files of a
// directory in guardedDirs must be Refused, unless its verdict is Unknown.
func TestOracle(t *testing.T) {
	s, rows := openSandbox(t), sections(t)
	harmful, late, failed := uint64(0), 0, 0
	for n := range *oracleCommands {
		c := command(rows, *oracleSeed, n)
		d := s.tryCommand(t, c)
		if len(d.Outside) > 0 || len(d.Gone) > 0 {
			harmful++
		}
		if d.TimedOut {
			late++
		}
		v := classify(c, at)
		if why := tooMild(c, v, d); why != "" {
			failed++
			t.Errorf("%s (-oracle-seed %d, command %d)\n%s\nchanged %q, gone %q", why, *oracleSeed, n, c,
				d.Outside[:min(4, len(d.Outside))], d.Gone)
		}
	}
	t.Logf("%d of %d commands did harm, %d took too long; the judgement of %d was too mild", harmful, *oracleCommands,
		late, failed)
	if harmful*3 < *oracleCommands {
		t.Errorf("only %d of %d commands did harm: the grammar or the sandbox is broken", harmful, *oracleCommands)
	}
}

// tooMild says how a verdict is too mild for the effect d of the command, or returns "". A command with BASH_ENV need
// not be Refused, because Judge only asks about code that such a variable names.
func tooMild(command string, v Verdict, d effect) string {
	switch {
	case v.Tier == Ordinary && len(d.Outside)+len(d.Gone) > 0:
		return "called ordinary"
	case v.Tier == AlwaysAsked && !v.Unknown && len(d.Gone) > 0 && !strings.Contains(command, "BASH_ENV="):
		return "asked about, not refused (" + v.Why + ")"
	}
	return ""
}

// TestOracleSees checks that the sandbox of TestOracle reports the true effects of known commands.
func TestOracleSees(t *testing.T) {
	t.Run("user namespace", func(t *testing.T) { oracleSees(t, true) })
	t.Run("root", func(t *testing.T) { oracleSees(t, false) })
}

func oracleSees(t *testing.T, userNamespace bool) {
	s, err := newSandbox(t, userNamespace)
	if err != nil {
		// This skip hides nothing: with PERLICA_REQUIRE_ORACLE, TestOracle fails if the namespaces are missing.
		t.Skipf("NOT TESTED: the comparison with a real shell: there is no sandbox: %v", err)
	}
	for _, test := range []struct {
		command string
		outside string // one of the changed paths outside, or ""
		gone    string
		output  string
	}{
		{command: "echo $$ $UID; touch new; rm -rf build; rm -f /tmp/t/scratch"},
		{command: "pwd", output: "/home/me/work/proj\n"},
		{command: "echo /home/*", output: "/home/me /home/you\n"},
		{command: "ls /tools/bin/bash; touch /tools/x /tools/bin/rm; rm -f /tools/bin/bash; ls /tools/bin/bash 2>&1",
			output: "/tools/bin/bash\n"},
		{command: "echo x > ~/.bashrc", outside: "/home/me/.bashrc"},
		{command: "touch ../x", outside: "/home/me/work/x"},
		{command: "chmod 600 /etc/hosts", outside: "/etc/hosts"},
		{command: "mv ../other /tmp", outside: "/home/me/work/other"},
		{command: "rm -rf /etc", outside: "/etc/hosts", gone: "/etc"},
		{command: "rm -rf .", outside: ""},
		{command: "rm -rf ~/work/proj", gone: "/home/me/work/proj"},
		{command: "find / -delete", outside: "/home/me/.bashrc", gone: "/"},
		{command: "cat /etc/hosts", output: "127.0.0.1 localhost\n"},
	} {
		d := s.tryCommand(t, test.command)
		if test.outside == "" && test.gone == "" && len(d.Outside) > 0 ||
			test.outside != "" && !slices.Contains(d.Outside, test.outside) {
			t.Errorf("%s: outside %q, want %q", test.command, d.Outside, test.outside)
		}
		if test.gone == "" && len(d.Gone) > 0 || test.gone != "" && !slices.Contains(d.Gone, test.gone) {
			t.Errorf("%s: gone %q, want %q", test.command, d.Gone, test.gone)
		}
		if !strings.HasPrefix(d.Output, test.output) {
			t.Errorf("%s: printed %q, want %q", test.command, d.Output, test.output)
		}
	}
}
