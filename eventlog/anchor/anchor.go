// Package anchor maintains a text file next to a log. The file is called the anchor. It shows when the log has lost
// its last events. The events that remain are consistent, so the log alone cannot show the loss.
//
// The package promises that a line of the anchor survives a power failure once Append has returned. The package
// distinguishes a torn last line from a damaged line. It refuses to write through a link.
package anchor

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
)

// Perlica appends a line to the anchor at the end of every run and syncs the anchor. Each line is
//
//	size SPACE root SPACE origin SPACE signature LF
//
// where signature is the base64 text of a signed note's signature line, or "-" if the checkpoint is not signed.

// Path returns the path of the anchor of the log at path.
func Path(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".anchor"
}

// signatureBytes is the length of a decoded signature: four bytes that identify the key, and 64 bytes of Ed25519.
const signatureBytes = 4 + ed25519.SignatureSize

// Format returns the line for c. The line contains the first signature of c's note. That is the log's own signature.
func Format(c evidence.Checkpoint) string {
	sig := "-"
	if _, sigs, ok := strings.Cut(c.Note, "\n\n"); ok {
		first, _, _ := strings.Cut(sigs, "\n")
		sig = first[strings.LastIndexByte(first, ' ')+1:]
	}
	return fmt.Sprintf("%d %s %s %s\n", c.Size, c.Root, c.Origin, sig)
}

// parseLine parses a line. The text has no newline.
func parseLine(line string) (evidence.Checkpoint, error) {
	f := strings.Split(line, " ")
	if len(f) != 4 {
		return evidence.Checkpoint{}, errors.New("it has not four fields")
	}
	c, err := evidence.ParseCheckpointText(f[2] + "\n" + f[0] + "\n" + f[1] + "\n")
	if err != nil {
		return c, err
	}
	if f[3] == "-" {
		return c, nil
	}
	// Check the length, because the parser of notes also accepts a signature that was cut short.
	if b, err := base64.StdEncoding.Strict().DecodeString(f[3]); err != nil || len(b) != signatureBytes ||
		strings.ContainsAny(f[3], "\r\n") {
		return c, errors.New("its signature is malformed")
	}
	signed, err := evidence.ParseCheckpoint(c.Text() + "\n— " + c.Origin + " " + f[3] + "\n")
	if err != nil {
		return c, err
	}
	return signed, nil
}

// Line is a line of the anchor.
type Line struct {
	Number int // counted from 1
	evidence.Checkpoint
	// Damage is the reason why the line cannot be parsed. nil means that the line is valid or torn.
	Damage error
	// Torn means that a crash cut this line short. Only the last line can be torn.
	Torn bool
}

// Read reads the anchor of the log at path. It returns no lines if the file does not exist.
func Read(path string) ([]Line, error) {
	if err := disk.Check(Path(path)); err != nil {
		return nil, err
	}
	b, err := readEnd(Path(path), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("eventlog: %w", err)
	}
	return parse(b), nil
}

// MaxBytes is the maximum number of bytes that Read reads from the end of an anchor. About 350,000 lines fit into
// them. The limit protects the memory from a file that claims a huge size.
const MaxBytes = 64 << 20

// readEnd returns the last lines of a file. It reads at most as many bytes as the parameter "most" says.
func readEnd(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(fi.Size(), most))
	n, err := f.ReadAt(b, fi.Size()-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	b = b[:n]
	if fi.Size() > most { // Drop the first line, because its beginning is missing.
		_, b, _ = bytes.Cut(b, []byte{'\n'})
	}
	return b, nil
}

// Size returns the number of events that the anchor of the log at path covers. It returns 0 if there is no anchor or
// the anchor's end cannot be read. It reads only the end of the file.
func Size(path string) int64 {
	return Above(0, path, func(evidence.Checkpoint) bool { return false })
}

// Above returns the same number as Size, but it ignores each line for which the function "forged" returns true.
// Checking a signature is slow. Above therefore returns 0 without calling "forged" if no line has a size above the
// parameter "least".
func Above(least int64, path string, forged func(evidence.Checkpoint) bool) int64 {
	name := Path(path)
	if disk.Check(name) != nil {
		return 0
	}
	tail, err := readEnd(name, maxLine)
	if err != nil {
		return 0
	}
	lines := strings.Split(string(tail), "\n")
	if !slices.ContainsFunc(lines, func(line string) bool {
		number, _, _ := strings.Cut(line, " ")
		size, err := strconv.ParseInt(number, 10, 64)
		return err == nil && size > least
	}) {
		return 0
	}
	var last evidence.Checkpoint
	for i := len(lines) - 2; i >= 0; i-- { // Skip the text after the last newline.
		c, err := parseLine(lines[i])
		if err != nil || last.Origin != "" && c.Origin != last.Origin || c.Size > last.Size && forged(c) {
			continue
		}
		// Take the largest size, because the sizes may not be in order: two processes can commit in one order and
		// append to the anchor in the opposite order. Ignore lines with another origin, because they may belong to an
		// earlier log.
		last.Origin, last.Size = c.Origin, max(last.Size, c.Size)
	}
	return last.Size
}

// errNoEnd says that the last line has no newline.
var errNoEnd = message.New("anchor.no-end", "the line break at its end is missing")

func parse(b []byte) []Line {
	var list []Line
	for n := 1; len(b) > 0; n++ {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		a := Line{Number: n}
		c, err := parseLine(string(line))
		switch {
		case whole && err == nil:
			a.Checkpoint = c
		case len(rest) == 0 && (!whole && torn(line) || holed(line)):
			a.Torn = true
		case err != nil:
			a.Damage = err
		default:
			a.Damage = errNoEnd
		}
		list, b = append(list, a), rest
	}
	return list
}

// tornLine matches every beginning of a line, including the whole line without its newline. The pattern permits 92
// characters for the signature, because that is the length of signatureBytes in base64.
var tornLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]*( [!-~]*){0,2}( (-|[A-Za-z0-9+/=]{0,92}))?$`)
})

// holed reports whether the beginning of the last line is missing. A line can span two sectors of the disk. After a
// crash the second sector may be on the disk while the first one contains only zeros.
func holed(line []byte) bool { return len(line) > 0 && line[0] == 0 }

// torn reports whether a crash can have left this last line. Such a line is the beginning of a line, and some file
// systems pad it with zeros. Append did not acknowledge the line, so readers may ignore it.
func torn(line []byte) bool { return tornLine().Match(bytes.TrimRight(line, "\x00")) }

// Append appends c to the anchor of the log at path and syncs it. It writes the line inside a call of the function
// "lock". Without the lock, another process could mistake the unfinished line for a torn one and cut it off.
func Append(path string, c evidence.Checkpoint, lock func(write func() error) error) (err error) {
	defer func() {
		if disk.IsNoSpace(err) {
			err = fmt.Errorf("%w: %w", disk.ErrFull, err)
		}
		if err != nil {
			err = fmt.Errorf("eventlog: anchor: %w", err)
		}
	}()
	name := Path(path)
	// Refuse a link, because a cloned repository may contain one that points to another file of the user.
	if fi, err := os.Lstat(name); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file of its own", name)
	}
	if err := disk.Check(name); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fresh := false
	err = lock(func() error {
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		fresh = fi.Size() == 0
		if err := endLine(f, fi.Size()); err != nil {
			return err
		}
		_, err = f.WriteString(Format(c))
		return err
	})
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if fresh { // Sync the folder, because the file's name must survive a power failure, too.
		return disk.SyncDir(filepath.Dir(name))
	}
	return nil
}

// maxLine is longer than any line, in bytes.
const maxLine = 4096

// endLine makes sure that the file ends with a newline. The parameter size is the file's length in bytes. endLine
// cuts off a torn last line. It leaves a damaged last line in the file, so that Verify finds the damage.
func endLine(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	tail := make([]byte, min(size, maxLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	whole := tail[len(tail)-1] == '\n'
	at := bytes.LastIndexByte(tail[:len(tail)-1], '\n')
	last := tail[at+1:]
	switch {
	case (holed(last) || !whole && torn(last)) && (at >= 0 || len(tail) < maxLine):
		return f.Truncate(size - int64(len(last)))
	case whole:
		return nil
	}
	_, err := f.WriteString("\n")
	return err
}

// String returns the line's number in words, for messages.
func (a Line) String() string { return "line " + strconv.Itoa(a.Number) + " of the anchor" }
