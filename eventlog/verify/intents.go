package verify

import (
	"path/filepath"

	"zombiezen.com/go/sqlite"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
)

// readIntents reads the .intents file, which also names each called input (package intents). The caller reads the log's
// size afterwards. By then the log has every intent that the file names as appended.
func (f *file) readIntents() {
	var err error
	if f.intents, err = intents.Read(f.reader.Path()); err != nil {
		f.v.warn(intentsUnreadable.With(err))
	}
}

// compareIntents compares the log's intents with the .intents file. If an appended intent is missing in the log, that
// is damage, because the log lost events. If an intent is missing in the file, that is no damage, because the next call
// adds it there.
func (f *file) compareIntents() error {
	if f.lacks["entries"] || f.lacks["names"] || !f.intents.There && !f.v.opt.NoImport || len(f.absent) > 0 {
		return nil
	}
	named := map[string]intents.Line{}
	for _, l := range f.intents.Lines {
		if l.State != intents.Undone && named[l.Hash].State != intents.Appended {
			named[l.Hash] = l
		}
	}
	missing, name := 0, filepath.Base(intents.Path(f.reader.Path()))
	calls := `SELECT seq, ` + store.NameOf("input_id") + ` FROM entries WHERE ` + store.IsIntent
	err := query(f.conn, calls, func(stmt *sqlite.Stmt) error {
		hash := intents.Hash(stmt.ColumnText(1))
		if _, ok := named[hash]; !ok && stmt.ColumnInt64(0) <= f.size {
			missing++
		}
		delete(named, hash)
		return nil
	})
	if disk.IsBroken(err) {
		return nil // another finding reports the damage
	}
	if err != nil {
		return err
	}
	f.lostIntents(named, name)
	switch {
	case missing > 0 && !f.intents.There:
		f.v.warn(intentsMissing.With(name))
	case missing > 0:
		f.v.warn(intentsShort.With(name, missing))
	}
	if n := f.intents.Damaged; n > 0 {
		f.v.warn(intentsDamaged.With(name, n))
	}
	return nil
}

// lostIntents reports the calls that the .intents file names and the log does not have. The parameter "name" is the
// name of that file.
func (f *file) lostIntents(named map[string]intents.Line, name string) {
	var first intents.Line
	lost, unsure := 0, 0
	for _, l := range named {
		if l.State == intents.Writing {
			unsure++
			continue
		}
		if lost++; lost == 1 || l.Seq < first.Seq {
			first = l
		}
	}
	if lost > 0 {
		f.v.find(0, Truncated, intentsLost.With(name, lost, first.Seq))
	}
	if unsure > 0 {
		f.v.warn(intentsUnsure.With(name, unsure))
	}
}
