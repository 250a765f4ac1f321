package trail

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/perlica/perlica/eventlog/redact"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 42e6, time.UTC)

func open(t *testing.T, o Options) *Trail {
	t.Helper()
	tr := Open(o)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tr
}

// read returns the objects of all trail files in dir.
func read(t *testing.T, dir string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, path := range files(t, dir, fileExt) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 64<<20)
		for sc.Scan() {
			m := map[string]any{}
			if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
				t.Errorf("%s: %v: %.200q", path, err, sc.Text())
			}
			all = append(all, m)
		}
		f.Close()
	}
	return all
}

func files(t *testing.T, dir, ext string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ext))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestOpenIsLazy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "logs")
	tr := open(t, Options{Dir: dir, Now: func() time.Time { return noon }})
	tr.Logger().Debug("below the level")
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the directory is there before the first line: %v", err)
	}
	tr.Logger().Info("first")
	stem := fmt.Sprintf("perlica-20261121T120000.042-%d", os.Getpid())
	if got := files(t, dir, ""); len(got) != 2 || filepath.Base(got[0]) != stem+".jsonl" ||
		filepath.Base(got[1]) != stem+".lock" {
		t.Errorf("files: %q", got)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, stem+".jsonl"): 0o600,
			filepath.Join(dir, stem+".lock"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, want)
			}
		}
	}
	if tr.Lost() != 0 {
		t.Errorf("Lost = %d", tr.Lost())
	}
}

func TestCloseEndsTheTrail(t *testing.T) {
	dir := t.TempDir()
	tr := Open(Options{Dir: dir})
	tr.Logger().Info("one")
	for range 2 {
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tr.Logger().Info("late")
	if got := len(read(t, dir)); got != 1 || tr.Lost() != 1 {
		t.Errorf("%d lines, %d lost, want 1 and 1", got, tr.Lost())
	}
	if locks := files(t, dir, lockExt); len(locks) != 0 {
		t.Errorf("locks left: %q", locks)
	}
}

func TestTwoTrailsOfOneMillisecond(t *testing.T) {
	dir := t.TempDir()
	now := func() time.Time { return noon }
	for range 3 {
		open(t, Options{Dir: dir, Now: now}).Logger().Info("x")
	}
	if got := files(t, dir, fileExt); len(got) != 3 || !strings.HasSuffix(got[1], "-3.jsonl") {
		t.Errorf("files: %q", got)
	}
}

func TestOff(t *testing.T) {
	tr := open(t, Options{})
	tr.Logger().Error("nowhere")
	if tr.Lost() != 0 {
		t.Errorf("Lost = %d", tr.Lost())
	}
}

func TestUnwritableDirectoryCostsLinesOnly(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tr := open(t, Options{Dir: filepath.Join(blocked, "logs")})
	tr.Logger().Info("one")
	tr.Logger().Info("two")
	if tr.Lost() != 2 {
		t.Errorf("Lost = %d, want 2", tr.Lost())
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	tr.Logger().Info("three") // the next line tries again
	if got := read(t, filepath.Join(blocked, "logs")); len(got) != 1 || tr.Lost() != 2 {
		t.Errorf("%v, %d lost", got, tr.Lost())
	}
}

func TestConcurrentLinesStayWhole(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, Options{Dir: dir, MaxSizeMB: 1, MaxFiles: 9})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			log := tr.Logger().With("g", g)
			for i := range 50 {
				log.Info("line", "i", i, "pad", strings.Repeat("x", 7000))
			}
		})
	}
	wg.Wait()
	if got := len(read(t, dir)); got != 400 || tr.Lost() != 0 {
		t.Errorf("%d lines, %d lost", got, tr.Lost())
	}
	if got := len(files(t, dir, fileExt)); got < 3 {
		t.Errorf("%d files, want a rotation", got)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("boom") }

func TestValues(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, Options{Dir: dir, Level: slog.LevelDebug})
	long := strings.Repeat("é", maxValue)
	tr.Logger().WithGroup("g").Debug("values",
		"token", 42, "tokens", 42, "err", errors.New("password=hunter2"), "chan", make(chan int),
		"panic", panics{}, "raw", json.RawMessage(`{"api_key":"hunter2","n":1}`), "bytes", []byte("hi"),
		"long", long, "map", map[string]any{"password": "hunter2", "list": []int{1}},
		"edge", strings.Repeat("x", maxValue-10)+" "+ghKey+" y", "level", slog.LevelWarn,
		slog.Group("credentials", "user", "bob", "id", 7))
	got := read(t, dir)[0]["g"].(map[string]any)
	for key, want := range map[string]string{
		"token":       `"[redacted]"`,
		"tokens":      `42`,
		"err":         `"password=[redacted]"`,
		"raw":         `{"api_key":"[redacted]","n":1}`,
		"bytes":       `"hi"`,
		"map":         `{"list":[1],"password":"[redacted]"}`,
		"level":       `"WARN"`,
		"credentials": `{"id":"[redacted]","user":"[redacted]"}`,
	} {
		if b := mustJSON(got[key]); b != want {
			t.Errorf("%s = %s, want %s", key, b, want)
		}
	}
	for _, key := range []string{"chan", "panic"} {
		if s, _ := got[key].(string); !strings.HasPrefix(s, "!") {
			t.Errorf("%s = %v", key, got[key])
		}
	}
	s := got["long"].(string)
	if want := fmt.Sprintf("…[cut, %d bytes]", 2*maxValue); !strings.HasSuffix(s, want) || len(s) > maxValue+40 {
		t.Errorf("long: %d bytes, ends %q", len(s), s[len(s)-40:])
	}
	if s := got["edge"].(string); strings.Contains(s, ghKey[4:8]) {
		t.Errorf("half a key at the cut: %q", s[len(s)-60:])
	}
}

func TestLineBeyondTheFileIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, Options{Dir: dir, MaxSizeMB: 1})
	var attrs []any
	for i := range 100 {
		attrs = append(attrs, fmt.Sprint("k", i), strings.Repeat("x", maxValue))
	}
	tr.Logger().Info("huge", attrs...)
	tr.Logger().Info("next")
	got := read(t, dir)
	if len(got) != 2 || !strings.Contains(got[0]["msg"].(string), "left out") || tr.Lost() != 1 {
		t.Errorf("%v, %d lost", got, tr.Lost())
	}
}

// old makes a trail file of one megabyte with the given age in minutes.
func old(t *testing.T, dir, name string, minutes int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, make([]byte, megabyte), 0o600); err != nil {
		t.Fatal(err)
	}
	when := noon.Add(-time.Duration(minutes) * time.Minute)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	keep := []string{
		old(t, dir, "perlica-20261121T100000.000-1.jsonl", 90), // its process lives
		old(t, dir, "perlica-20261121T100000.000-1-2026-11-21T11-00-00.000.jsonl", 80),
		old(t, dir, "perlica-20261121T100000.000-5.jsonl", 70), // its process is just starting
		old(t, dir, "perlica-20261121T110000.000-4.jsonl", 10), // the newest file
		old(t, dir, "notes.jsonl", 99),
		old(t, dir, "perlica-notes.jsonl", 99),
		old(t, dir, "perlica-x.txt", 99),
	}
	gone := []string{
		old(t, dir, "perlica-20261121T100000.000-2.jsonl", 60), // its process ended and left the lock
		old(t, dir, "perlica-20261121T100000.000-2-2.jsonl", 59),
		old(t, dir, "perlica-20261121T100000.000-3-2026-11-21T11-00-00.000.jsonl", 50),
	}
	lock := flock.New(filepath.Join(dir, "perlica-20261121T100000.000-1.lock"))
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer lock.Close()
	for name, age := range map[string]time.Duration{"1": time.Hour, "2": time.Hour, "5": 0} {
		path := filepath.Join(dir, "perlica-20261121T100000.000-"+name+".lock")
		f, err := os.OpenFile(path, os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chtimes(path, noon.Add(-age), noon.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	tr := open(t, Options{Dir: dir, MaxSizeMB: 1, MaxTotalMB: 5, Now: func() time.Time { return noon }})
	tr.Logger().Info("x")
	for _, path := range keep {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("swept: %v", err)
		}
	}
	for _, path := range append(gone, filepath.Join(dir, "perlica-20261121T100000.000-2.lock")) {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("still there: %s", path)
		}
	}
}

func TestSweepLimitsTheNumberOfFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range maxDirFiles + 50 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("perlica-20261121T100000.000-%d.jsonl", i)), nil,
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, Options{Dir: dir}).Logger().Info("x")
	if got := len(files(t, dir, fileExt)); got != maxDirFiles {
		t.Errorf("%d files, want %d", got, maxDirFiles)
	}
}

func TestTotalHoldsWhileWriting(t *testing.T) {
	dir := t.TempDir()
	tr := open(t, Options{Dir: dir, MaxSizeMB: 1, MaxFiles: 50, MaxTotalMB: 3})
	for range 700 {
		tr.Logger().Info("line", "pad", strings.Repeat("x", maxValue-100))
	}
	var total int64
	for _, path := range files(t, dir, fileExt) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 3*megabyte {
		t.Errorf("%d bytes", total)
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		Open(Options{Dir: dir})
	}
}

func BenchmarkLine(b *testing.B) {
	tr := Open(Options{Dir: b.TempDir()})
	defer tr.Close()
	log := tr.Logger()
	b.ReportAllocs()
	for b.Loop() {
		log.Info("frame received", "run", "0192f3a4-7c1d-7e2f-8a3b-4c5d6e7f8091", "method", "session/update", "bytes", 213)
	}
}

// TestTrailUsesThePatterns checks that matches of the user's patterns are masked, also where a long value is cut.
func TestTrailUsesThePatterns(t *testing.T) {
	redactor, err := redact.New(`CUST-[0-9]{4}`)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tr := Open(Options{Dir: dir, Redactor: redactor})
	tr.Logger().Info("for CUST-1234", "text", strings.Repeat("x", maxValue-4)+"CUST-5678")
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	lines := read(t, dir)
	text, _ := lines[0]["text"].(string)
	if len(lines) != 1 || lines[0]["msg"] != "for [redacted]" || strings.Contains(text, "CUST") {
		t.Errorf("%d lines: %v … %s", len(lines), lines[0]["msg"], text[max(0, len(text)-100):])
	}
}

// ghKey consists of parts, so that secret scanners do not report this file.
var ghKey = "ghp_" + strings.Repeat("aB3dE6gH", 5)[:36]

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
