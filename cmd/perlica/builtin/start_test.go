package builtin_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider/predictable"
)

// maxInit is the number of bytes that a package may allocate at start. mayInit lists the exceptions.
const maxInit = 8 << 10

// mayInit lists the packages that may allocate more than maxInit in every command, each with its reason.
var mayInit = map[string]string{
	"encoding/xml":                               "a table of HTML's entities; the driver of PostgreSQL reads XML",
	"unicode":                                    "tables of the standard library by name",
	"github.com/mattn/go-runewidth":              "a table of the widths of the first characters",
	"github.com/dustin/go-humanize":              "its expressions are compiled at start",
	"github.com/yuin/goldmark/util":              "its expressions are compiled at start",
	"github.com/yuin/goldmark/parser":            "its expressions are compiled at start",
	"golang.org/x/net/html":                      "tables of HTML's entities; some mails have no text besides HTML",
	"github.com/google/jsonschema-go/jsonschema": "its types and expressions are looked at at start",
	"mvdan.cc/sh/v3/fileutil":                    "its expressions are compiled at start",
	"github.com/perlica/perlica/eventlog/redact": "maps of secrets' names",
	ofAll: "room for the sentences of all packages",
	"github.com/perlica/perlica/kernel/report": "words for each type of event",
	"github.com/perlica/perlica/service/web":   "its sentences are declared at start",
	"github.com/perlica/perlica/kernel/flow":   "its sentences are declared at start",
	"github.com/perlica/perlica/policy":        "its sentences are declared at start",
	"github.com/perlica/perlica/policy/shell":  "a closure for each expression that is compiled when it is first used",
}

// ofAll is the package that declares the sentences of errors. It imports no other package of Perlica, so the program
// initialises it first.
const ofAll = "github.com/perlica/perlica/eventlog/message"

// frontEnd lists packages that the agent's process must not initialise. The list has only packages that allocate at
// start, because the order of other packages is not fixed.
var frontEnd = []string{
	"github.com/spf13/", "github.com/yuin/goldmark", "github.com/perlica/perlica/policy",
	"github.com/perlica/perlica/eventlog",
	"github.com/perlica/perlica/kernel", "golang.org/x/", "github.com/go-faster", "log/slog", "math/big", "mime",
	"modernc.org/m",
	"modernc.org/sqlite", "mvdan.cc/sh", "net/http", "path/filepath",
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes`)

// inits runs the program and returns the number of bytes that each package allocated at start.
func inits(t *testing.T, program string, args ...string) map[string]int {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "HOME="+t.TempDir(), predictable.EnvScenario+"=")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, trace.String())
	}
	found := map[string]int{}
	for _, m := range initLine.FindAllStringSubmatch(trace.String(), -1) {
		var n int
		if _, err := fmt.Sscan(m[2], &n); err != nil {
			t.Fatal(err)
		}
		found[m[1]] = n
	}
	if len(found) == 0 {
		t.Fatalf("no trace of initialisation:\n%s", trace.String())
	}
	return found
}

// TestStart checks that no command initialises packages that it does not use. The agent's process must initialise no
// package of the front end. No function of the program may search a method by a name that the linker does not know:
// the linker then keeps the exported methods of all types, and the binary grows by a tenth.
func TestStart(t *testing.T) {
	// Go takes an earlier result of a test from its cache unless a folder that the test read has changed. So this test
	// reads all folders of the program's source.
	if err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "perlica.exe")
	out, err := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", program, "..").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%.10000s", err, out)
	}
	if edges := bytes.Count(out, []byte(" -> ")); edges < 10_000 {
		t.Errorf("the linker printed %d edges of the call graph; its format has changed", edges)
	}
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte("<ReflectMethod>")) {
			t.Errorf("a function searches a method by a name that the linker does not know: %s", line)
			break
		}
	}
	t.Run("every command", func(t *testing.T) {
		found := inits(t, program, "version")
		for name, bytes := range found {
			if bytes > maxInit && mayInit[name] == "" {
				t.Errorf("%s allocates %d bytes at start; make it when it is first used, or list it in mayInit with the reason",
					name, bytes)
			}
		}
		for name := range mayInit {
			if found[name] <= maxInit {
				t.Errorf("%s allocates %d bytes at start; remove it from mayInit", name, found[name])
			}
		}
	})
	t.Run("agent", func(t *testing.T) {
		for name, bytes := range inits(t, program, "agent", "predictable") {
			for _, bad := range frontEnd {
				if bytes > 0 && name != ofAll && strings.HasPrefix(name, bad) {
					t.Errorf("the agent's process initialises %s", name)
				}
			}
		}
	})
}
