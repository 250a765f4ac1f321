package intents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/eventlog/disk"
)

// A Log describes the event log that belongs to a Book. The Book records the intents of that log.
type Log struct {
	Name string // the log's name in its checkpoints
	// After returns the committed intents after the event seq, in their order.
	After func(seq int64) ([]Call, error)
}

// A Repair describes the differences between the file and the log that the first write to the Book found.
type Repair struct {
	// Added is the number of lines that were missing in the file and were added from the log.
	Added int
	// Lost is the number of intents that the log once had on disk and has lost.
	Lost int
}

// A Book is the intents file of one log, as one writer uses it. One goroutine at a time may call its methods, and
// only while no other process can write to the log.
type Book struct {
	path string
	// from is the length of the file in bytes when the log was opened.
	from int64
	// end is the present length in bytes, if no other process has written to the file.
	end int64
	// others means that another process has written to the file since the log was opened.
	others bool
	// whole means that the file was compared with the log.
	whole bool
	file  os.FileInfo
}

// Open returns the Book of the log at path. The caller has just opened that log.
func Open(path string) *Book {
	b := &Book{path: Path(path)}
	if fi, err := os.Lstat(b.path); err == nil {
		b.from = fi.Size() / lineBytes * lineBytes
		b.end = b.from
	}
	return b
}

// A TakenError says that the book names an input, and the log has no intent for it. The log lost the intent, and the
// prompt may have left.
type TakenError struct{ Index int } // the index of the call in the argument of Begin

func (e *TakenError) Error() string {
	return "eventlog: an input was called before, and the log lost it"
}

// An Entry is a group of lines that were written together and are not synced yet.
type Entry struct {
	f      *os.File
	at     int64
	lines  int
	fresh  bool
	Repair Repair
}

// Begin writes a line for each call. After an error, the file has no new valid line. If Begin succeeds, the caller
// must call End.
func (b *Book) Begin(log Log, calls []Call) (e *Entry, err error) {
	if fi, err := os.Lstat(b.path); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file of its own", b.path)
	}
	if err := disk.Check(b.path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	end, err := b.findEnd(f, fi)
	if err != nil {
		return nil, err
	}
	if b.others {
		for i, c := range calls {
			if called, _, err := find(f, b.from, c.Input); err != nil || called {
				return nil, errors.Join(err, &TakenError{i})
			}
		}
	}
	e = &Entry{f: f, at: end, fresh: fi.Size() == 0}
	var text []byte
	if !b.whole {
		missing, lost, err := compare(f, end, log)
		if err != nil {
			return nil, err
		}
		e.Repair = Repair{len(missing), lost}
		for _, c := range missing {
			text = append(text, format(c, log.Name, Appended)...)
		}
		e.at += int64(len(text))
	}
	for _, c := range calls {
		text = append(text, format(c, log.Name, Writing)...)
	}
	e.lines = len(calls)
	if _, err := f.WriteAt(text, end); err != nil {
		return nil, errors.Join(noSpace(err), f.Truncate(end))
	}
	b.whole, b.end, b.file = true, end+int64(len(text)), fi
	return e, nil
}

// findEnd returns the offset at which the next line begins. It also finds out whether another process has written,
// cut or replaced the file.
func (b *Book) findEnd(f *os.File, fi fs.FileInfo) (end int64, err error) {
	end = fi.Size() / lineBytes * lineBytes // An incomplete last line will be overwritten.
	var line [lineBytes]byte
	for end > 0 {
		if _, err := f.ReadAt(line[:], end-lineBytes); err != nil {
			return 0, err
		}
		if !isBlank(line[:]) {
			break
		}
		end -= lineBytes
	}
	if end != b.end || b.file != nil && !os.SameFile(b.file, fi) {
		b.others = true
		if end < b.end || b.file != nil && !os.SameFile(b.file, fi) {
			b.whole, b.from = false, 0
		}
	}
	return end, nil
}

// compare compares the first bytes of the file with the log. The parameter "end" is the number of these bytes. The
// result "missing" has the log's intents that the file does not name. The result "lost" counts the intents that the
// file names and the log has lost. If the log has the intent of the last line, it has the intents of all lines, so
// compare does not read the earlier lines. Only later intents can then be missing in the file.
func compare(f *os.File, end int64, log Log) (missing []Call, lost int, err error) {
	if last, ok, err := lastLine(f, end); err != nil {
		return nil, 0, err
	} else if ok && last.State != Undone {
		calls, err := log.After(last.Seq - 1)
		if err != nil {
			return nil, 0, err
		}
		if len(calls) > 0 && calls[0].Seq == last.Seq && Hash(calls[0].Input) == last.Hash {
			return calls[1:], 0, nil
		}
	}
	calls, err := log.After(0)
	if err != nil || len(calls) == 0 && end == 0 {
		return nil, 0, err
	}
	named := map[string]byte{}
	err = each(f, func(b []byte) {
		if l, ok := parse(b); ok && l.State != Undone && named[l.Hash] != Appended {
			named[l.Hash] = l.State
		}
	})
	for _, c := range calls {
		hash := Hash(c.Input)
		if _, ok := named[hash]; !ok {
			missing = append(missing, c)
		}
		delete(named, hash)
	}
	for _, state := range named {
		if state == Appended {
			lost++
		}
	}
	return missing, lost, err
}

// lastLine returns the last line before the offset in the parameter "end". ok is false if that line is damaged or does
// not exist.
func lastLine(f *os.File, end int64) (l Line, ok bool, err error) {
	if end < lineBytes {
		return l, false, nil
	}
	var line [lineBytes]byte
	if _, err := f.ReadAt(line[:], end-lineBytes); err != nil {
		return l, false, err
	}
	l, ok = parse(line[:])
	return l, ok, nil
}

// Sync waits until the lines survive a power failure. It may run during the commit of the log.
func (e *Entry) Sync() error {
	if err := e.f.Sync(); err != nil {
		return noSpace(err)
	}
	if e.fresh { // The file's name must survive a power failure, too.
		return disk.SyncDir(filepath.Dir(e.f.Name()))
	}
	return nil
}

// End writes the state into the lines of the entry. It does not wait for the disk. If the write fails, the lines
// still count as called inputs. End does nothing to a nil Entry.
func (e *Entry) End(state byte) {
	if e == nil {
		return
	}
	for i := range e.lines {
		_, _ = e.f.WriteAt([]byte{state}, e.at+int64(i)*lineBytes+stateAt) // An error only affects verification.
	}
	_ = e.f.Close() // Sync has already returned any error
}

// noSpace wraps an error in ErrFull if the disk has no space.
func noSpace(err error) error {
	if disk.IsNoSpace(err) {
		return fmt.Errorf("%w: %w", disk.ErrFull, err)
	}
	return err
}
