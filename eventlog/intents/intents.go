// Package intents maintains a text file that names each called input. If the log is lost, this file prevents a second
// call for the same input. The file lies next to the log. Its name ends with .intents. The log itself has an event for
// each called input, the intent.
//
// The package promises that a line survives a power failure once Entry.Sync has returned. A line that a crash cut
// short names no call. The package refuses to write through a link. It does not decide whether a call may be made.
package intents

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/disk"
)

// Each line names one called input. It has 64 bytes, so that no line spans two sectors of a disk. This is the format,
// and the line of the input "a" with event 8:
//
//	hash SPACE seq SPACE log SPACE check SPACE state LF
//	ca978112ca1bbdcafac231b39a23dc4d 0000000008 b04bd8f6 30d3e523 +
//
// hash is the first 32 hex digits of the input id's SHA-256. seq is the number of the event
// llm.requested, in ten digits. log is the last eight characters of the log's name. check is the
// CRC-32C of the 52 bytes before its space, in eight hex digits. state is one of the states below.
//
// The package writes the line with the state '?' during the transaction that appends the event. The line's sync and
// the commit run at the same time, and the prompt leaves after both. Then the state becomes '+', without a sync. An
// incomplete line, or a line of zeros, was not synced. It names no call.
const (
	lineBytes = 64
	hashBytes = 32
	seqAt     = 33
	seqDigits = 10
	logAt     = 44
	logBytes  = 8
	checkAt   = 53
	stateAt   = 62
)

// These are the states of a line.
const (
	// Writing means that the event was being appended. The log may have the event.
	Writing = '?'
	// Appended means that the log had the event on disk.
	Appended = '+'
	// Undone means that the event was not appended, and that no prompt left.
	Undone = '-'
)

// A Call is a call of the agent: the Seq of the event llm.requested and the id of the input.
type Call struct {
	Seq   int64
	Input string
}

// A Line is a readable line of the file.
type Line struct {
	Hash  string
	Seq   int64
	Log   string
	State byte
}

// Path returns the path of the file that belongs to the log at path.
func Path(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".intents"
}

// Hash returns the text that identifies an input in a line.
func Hash(input string) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:])[:hashBytes]
}

// format returns the line of a call in the log with the name log.
func format(c Call, log string, state byte) []byte {
	log = fmt.Sprintf("%*s", logBytes, log[max(0, len(log)-logBytes):])
	b := fmt.Appendf(make([]byte, 0, lineBytes), "%s %0*d %s", Hash(c.Input), seqDigits, c.Seq,
		strings.ReplaceAll(log, " ", "-"))
	return fmt.Appendf(b, " %08x %c\n", checksum(b), state)
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// parse parses a line. ok is false if the line is damaged.
func parse(b []byte) (l Line, ok bool) {
	if len(b) != lineBytes || b[lineBytes-1] != '\n' {
		return l, false
	}
	check, err := strconv.ParseUint(string(b[checkAt:checkAt+8]), 16, 32)
	if err != nil || uint32(check) != checksum(b[:checkAt-1]) {
		return l, false
	}
	l = Line{Hash: string(b[:hashBytes]), Log: string(b[logAt : logAt+logBytes]), State: b[stateAt]}
	l.Seq, err = strconv.ParseInt(string(b[seqAt:seqAt+seqDigits]), 10, 64)
	return l, err == nil && (l.State == Writing || l.State == Appended || l.State == Undone)
}

// Contents are the lines of a file.
type Contents struct {
	Lines   []Line
	Damaged int  // number of lines that cannot be parsed
	There   bool // the file exists
}

// Called returns the number of lines with the state Appended: the log had the events of these calls on disk.
func (c Contents) Called() (n int) {
	for _, l := range c.Lines {
		if l.State == Appended {
			n++
		}
	}
	return n
}

// Read reads the file that belongs to the log at path.
func Read(path string) (c Contents, err error) {
	f, err := open(path)
	if f == nil || err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }() // only read
	c.There = true
	err = each(f, func(b []byte) {
		switch l, ok := parse(b); {
		case ok:
			c.Lines = append(c.Lines, l)
		case !isBlank(b):
			c.Damaged++
		}
	})
	return c, err
}

// Names looks for an input in the file of the log at path. The result "called" says that the file names the input as
// called. The result "appended" says that the log had the event on disk. A line counts even if its other fields are
// damaged.
func Names(path, input string) (called, appended bool, err error) {
	f, err := open(path)
	if f == nil || err != nil {
		return false, false, err
	}
	defer func() { _ = f.Close() }() // only read
	return find(f, 0, input)
}

// find looks for an input in the lines after the offset "from". Its results are the same as the results of Names.
func find(f *os.File, from int64, input string) (called, appended bool, err error) {
	hash := Hash(input)
	head := binary.LittleEndian.Uint64([]byte(hash))
	err = chunks(f, from, func(b []byte) bool {
		for ; len(b) >= lineBytes; b = b[lineBytes:] {
			if binary.LittleEndian.Uint64(b) == head && string(b[:hashBytes]) == hash && b[stateAt] != Undone {
				called, appended = true, appended || b[stateAt] != Writing
			}
		}
		return !appended
	})
	return called, appended, err
}

// open opens the file for reading. It returns nil if there is no file.
func open(path string) (*os.File, error) {
	if err := disk.Check(Path(path)); err != nil {
		return nil, err
	}
	f, err := os.Open(Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: intents: %w", err)
	}
	return f, nil
}

// bufferBytes is the size of a buffer for whole lines. It fits into a processor's second cache.
const bufferBytes = 2048 * lineBytes

// chunks reads whole lines after the offset "from" and calls the function f with them, until f returns false.
func chunks(file *os.File, from int64, f func(b []byte) bool) error {
	buf := make([]byte, bufferBytes)
	for {
		n, err := file.ReadAt(buf, from)
		if !f(buf[:n/lineBytes*lineBytes]) || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("eventlog: intents: %w", err)
		}
		from += int64(n)
	}
}

// each calls the function f with the bytes of each line.
func each(file *os.File, f func(b []byte)) error {
	return chunks(file, 0, func(b []byte) bool {
		for ; len(b) > 0; b = b[lineBytes:] {
			f(b[:lineBytes])
		}
		return true
	})
}

// isBlank reports whether a line has only zeros. After a crash, a line that was not synced may have only zeros.
func isBlank(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
