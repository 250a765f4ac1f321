package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/export"
)

// TestImportLeavesNothing checks that a failed import leaves no file, and that it does not change existing files.
func TestImportLeavesNothing(t *testing.T) {
	text, _ := exportOf(t, closedLog(t), export.Options{})
	dir := t.TempDir()
	path := filepath.Join(dir, "new.db")
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"empty":      {"", 1},
		"no export":  {"hello\n", 1},
		"a log":      {"SQLite format 3\x00", 1},
		"cut":        {text[:strings.Index(text, `{"seq":300`)+99], 301},
		"no end":     {strings.TrimSuffix(text, "\n"), 602},
		"more":       {text + "\n", 603},
		"newer":      {strings.Replace(text, `export":1`, `export":2,"new":1`, 1), 1},
		"older":      {strings.Replace(text, `export":1`, `export":0`, 1), 1},
		"last event": {text[:strings.LastIndex(text, "{\"seq\":600")] + text[strings.Index(text, "{\"end\""):], 601},
		"swapped":    {swapLines(text, 300, 301), 301},
		"twice":      {swapLines(text, 300, 300), 302},
	} {
		_, err := export.Import(t.Context(), strings.NewReader(c.text), path, nil)
		var bad *export.ImportError
		if !errors.As(err, &bad) || bad.Line != c.line {
			t.Errorf("%s: %v, want line %d", name, err, c.line)
		}
		if other := name == "newer" || name == "older"; other != errors.Is(err, disk.ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("%s: %v is left, %v", name, left, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := export.Import(ctx, strings.NewReader(text), path, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, path)
	// Import must also refuse the second path. It has no .db at its end, but a log there would have the same anchor.
	for _, taken := range []string{path, strings.TrimSuffix(path, ".db")} {
		if err := os.WriteFile(anchor.Path(path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := export.Import(t.Context(), strings.NewReader(text), taken, nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", taken, err)
		}
	}
	if contents(t, path) != before {
		t.Error("the file that was there is another one")
	}
	cancel()
	if _, err := export.Import(ctx, strings.NewReader(text), filepath.Join(dir, "third.db"), nil); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
	if _, err := export.Import(t.Context(), strings.NewReader(text), filepath.Join(dir, "no", "folder.db"),
		nil); !errors.Is(err, disk.ErrReadOnly) {
		t.Error(err)
	}
	for _, pattern := range []string{"third*", ".perlica*"} {
		if left, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}

// swapLines exchanges the lines i and j. If i equals j, it repeats the line.
func swapLines(text string, i, j int) string {
	lines := strings.SplitAfter(text, "\n")
	if i == j {
		return strings.Join(slices.Insert(lines, i+1, lines[i]), "")
	}
	lines[i], lines[j] = lines[j], lines[i]
	return strings.Join(lines, "")
}
