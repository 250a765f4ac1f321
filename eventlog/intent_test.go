package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
)

// TestNoFlipForgetsACall flips one bit in each byte of the pages that list the called inputs or
// their names. With -flips 1000 or
// more it flips every bit. Each called input must be found, or the file must be refused. An input that was not called
// must never be found.
func TestNoFlipForgetsACall(t *testing.T) {
	leaveToOtherBuild(t)
	path := golden(t, "signed")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type page struct {
		Name string
		Root int
	}
	var pages []page
	if err := dbOf(t, path).Select(&pages, `
		SELECT name, rootpage AS root
		FROM sqlite_schema
		WHERE name IN ('events_one_intent_per_input', 'events_one_outcome_per_run', 'events_run', 'open_runs', 'names',
			'sqlite_autoindex_names_1')`); err != nil || len(pages) != 6 {
		t.Fatal(pages, err)
	}
	for _, p := range pages {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			const size = 8192
			flipped := filepath.Join(t.TempDir(), "eventlog.db")
			f, err := os.OpenFile(flipped, os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.Write(whole); err != nil {
				t.Fatal(err)
			}
			refused, forgotten, step := 0, 0, 1
			if strings.Contains(p.Name, "names") && *flips < 1000 {
				step = 5 // these two pages are full
			}
			for at := (p.Root - 1) * size; at < p.Root*size; at += step {
				if whole[at] == 0 && at%size > 64 {
					continue // SQLite ignores the space between the cells of a page.
				}
				bits := []int{at % 8}
				if *flips >= 1000 {
					bits = []int{0, 1, 2, 3, 4, 5, 6, 7}
				}
				for _, bit := range bits {
					if _, err := f.WriteAt([]byte{whole[at] ^ 1<<bit}, int64(at)); err != nil {
						t.Fatal(err)
					}
					lost, err := countForgotten(t, flipped)
					if err != nil {
						refused++
					}
					if forgotten += lost; lost > 0 {
						t.Errorf("byte %d of page %d, bit %d: a call is forgotten, or one is found that was not made", at%size, p.Root,
							bit)
					}
				}
				if _, err := f.WriteAt(whole[at:at+1], int64(at)); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d flips were refused", refused)
			if (p.Name == "events_one_intent_per_input" || strings.Contains(p.Name, "names")) && refused == 0 {
				t.Error("no flip was seen")
			}
		})
	}
}

// countForgotten counts the inputs for which Intent returns a wrong answer.
func countForgotten(t *testing.T, path string) (wrong int, refused error) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	for id, run := range map[event.InputID]string{"two": "01a2043c-1767", "four": "01a2043c-17a9", "fivf": ""} {
		e, ok, err := r.Intent(t.Context(), id)
		switch {
		case err != nil:
			refused = err
		case ok != (run != ""), ok && string(e.Run)[:13] != run:
			wrong++
		}
	}
	return wrong, refused
}

// TestIndexWithoutARow removes a row from the index of inputs. Verify and CheckIntegrity must report the damage, and
// the log must refuse to call the input again.
func TestIndexWithoutARow(t *testing.T) {
	path := golden(t, "signed")
	if err := execFile(path, loseInput("one")); err != nil {
		t.Fatal(err)
	}
	rep := verifyFile(t, path, verify.Options{})
	if rep.OK() || rep.Findings[0].Kind != verify.Unreadable {
		t.Errorf("Verify: %+v", rep)
	}
	r := readerOf(t, path)
	if err := r.CheckIntegrity(t.Context()); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("CheckIntegrity: %v", err)
	}
	if _, ok, err := r.Intent(t.Context(), "one"); ok || !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Intent: %v, %v", ok, err)
	}
	if e, ok, err := r.Intent(t.Context(), "two"); !ok || err != nil || e.Input != "two" {
		t.Errorf("Intent: %v, %v", ok, err)
	}
}

// loseInput returns SQL that removes an input from the index of inputs without a change of the schema.
func loseInput(id string) string {
	name := `(SELECT id FROM names WHERE name = '` + id + `')`
	return `PRAGMA writable_schema = 1;
		UPDATE sqlite_schema SET sql = sql || ' AND input_id <> ' || ` + name + ` WHERE name = 'events_one_intent_per_input';
		PRAGMA writable_schema = RESET;
		REINDEX events_one_intent_per_input;
		PRAGMA writable_schema = 1;
		UPDATE sqlite_schema SET sql = replace(sql, ' AND input_id <> ' || ` + name +
		`, '') WHERE name = 'events_one_intent_per_input';`
}
