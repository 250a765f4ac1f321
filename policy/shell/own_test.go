package shell

import (
	"strings"
	"testing"
)

// refused reports whether Judge refuses the command of Perlica with these words.
func refused(words string) bool {
	return Judge(Command{Argv: append([]string{"perlica"}, strings.Fields(words)...)}, Place{}).Verdict.Tier == Refused
}

// TestOwnCommand checks that Judge refuses the commands of Perlica that answer, grant or change something, and allows
// the commands that only read.
func TestOwnCommand(t *testing.T) {
	for _, c := range ownCommands {
		for _, words := range []string{c, c + " x", "--context y " + c + " x", c + " --format json", "--cwd=/x " + c} {
			if !refused(words) {
				t.Errorf("perlica %s is not refused", words)
			}
		}
	}
	for _, c := range ownReaders {
		for _, words := range []string{c, "--context y " + c, c + " --help", c + " --format json"} {
			if refused(words) {
				t.Errorf("perlica %s is refused", words)
			}
		}
	}
	for words, want := range map[string]bool{
		"": true, "no-such-command": true, "--service": true, "run -s x hi": true, "run -sx hi": true,
		"run -c hi": true, "run -qc hi": true,
		"run --session=x hi": true, "run --continue hi": true, "run --allow x hi": true, "run --allow=x hi": true,
		"run --deny -c hi": false, "run --resume x hi": true, "run --mcp-config x hi": true,
		"run --append-system -c hi": false, "run --schema --version -c hi": true, "run -pc hi": true,
		"run -p hi": false, "run hi": false, "run pending allow": false, "exec -s x hi": true,
		"run --sess x hi":        true,
		"pending allow x --help": false, "log key": false, "log key rotate --json": true,
		"policy check -- perlica pending allow": false,
	} {
		if got := refused(words); got != want {
			t.Errorf("perlica %s: refused is %v, want %v", words, got, want)
		}
	}
}

// TestOwnFolders checks that Judge also protects Perlica's folders at other places than the default ones.
func TestOwnFolders(t *testing.T) {
	place := at
	place.Own = []string{"/home/me/work/proj/state", "/srv/perlica/"}
	for command, want := range map[string]Tier{
		"echo x > state/y": Refused, "rm -rf state": Refused, "rm -rf /srv/perlica": Refused,
		"cp x /srv/perlica/log.db": Refused, "cp x /srv/*/log.db": AlwaysAsked,
		"echo x > $PERLICA_HOME/y": Refused, "cat state/y": Ordinary, "cp state/y z": Ordinary,
		"echo x > states": Ordinary, "rm -rf stat*": Refused,
	} {
		if v := classify(command, place); v.Tier != want || want == Refused && v.Word != "perlica" {
			t.Errorf("%s: %+v, want %s", command, v, want)
		}
	}
}
