package anchor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/evidence"
)

// TestATornAnchorIsNoDamage cuts the last line at every byte. The lines before it must be valid, and the rest must be
// torn. If another byte replaces the newline, the line must be damaged.
func TestATornAnchorIsNoDamage(t *testing.T) {
	signed := signedCheckpoint(t, makeKeys(t), 1)
	unsigned := signed
	unsigned.Note = ""
	for _, c := range []evidence.Checkpoint{signed, unsigned} {
		line := []byte(Format(c))
		for n := 1; n < len(line); n++ {
			for _, zeros := range []int{0, 7} {
				file := append(append(bytes.Clone(line), line[:n]...), make([]byte, zeros)...)
				list := parse(file)
				if len(list) != 2 || list[0].Size != c.Size || list[0].Note != c.Note || !list[1].Torn {
					t.Errorf("cut at %d of %d, %d zeros: %+v", n, len(line), zeros, list)
				}
			}
		}
		for bit := range 8 {
			file := bytes.Clone(line)
			file[len(file)-1] ^= 1 << bit
			if list := parse(file); list[0].Damage == nil {
				t.Errorf("bit %d of the line's end is another: %+v", bit, list)
			}
		}
	}
}

// TestAnchoredSize checks that Size uses all whole lines of the newest origin, however the file ends and however long
// it is. A line with a smaller size after a line with a larger size must not reduce the result.
func TestAnchoredSize(t *testing.T) {
	c := evidence.Checkpoint{Origin: "perlica/x", Size: 17}
	line := Format(c)
	long := strings.Repeat(Format(evidence.Checkpoint{Origin: "perlica/x", Size: 3}), 200)
	for name, text := range map[string]string{
		"one line": line, "two": Format(evidence.Checkpoint{Origin: "perlica/x", Size: 3}) + line, "many": long + line,
		"torn": line + line[:9], "holed": line + "\x00\x00\x00", "damaged behind": line + "nonsense\n",
		"out of order": line + Format(evidence.Checkpoint{Origin: "perlica/x", Size: 16}),
		"another's":    Format(evidence.Checkpoint{Origin: "perlica/y", Size: 90}) + line,
	} {
		path := filepath.Join(t.TempDir(), "e.db")
		if err := os.WriteFile(Path(path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := Size(path); n != 17 {
			t.Errorf("%s: %d", name, n)
		}
	}
	path := filepath.Join(t.TempDir(), "e.db")
	for _, text := range []string{"", "17", "nonsense\n"} {
		if n := Size(path); n != 0 {
			t.Errorf("%q before: %d", text, n)
		}
		if err := os.WriteFile(Path(path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
