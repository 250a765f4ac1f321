package log

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
	"github.com/perlica/perlica/eventlog/evidence"
)

// parseKept reads a checkpoint that was kept elsewhere. A tag, a ticket or a chat adds empty lines
// around it, takes the last line's end, or ends lines in its own way; nothing of that is signed.
func parseKept(text []byte) (evidence.Checkpoint, error) {
	return evidence.ParseCheckpoint(asWritten(text))
}

// asWritten undoes what mail, chats and other systems do to a text that ends with a signature.
func asWritten(text []byte) string {
	lines := strings.ReplaceAll(string(text), "\r\n", "\n")
	return strings.Trim(lines, " \t\n") + "\n"
}

const (
	// maxNote is more than a checkpoint with all its cosignatures has.
	maxNote = 1 << 20
	// maxProof is as much as a proof of a line of 64 MiB can have, escaped and in base64.
	maxProof = 1 << 29
)

// given reads what the command line names, a file or, as -, standard input.
func (a *app) given(name string, most int64) ([]byte, error) {
	if name != "-" {
		return readGiven(name, most)
	}
	b, err := io.ReadAll(io.LimitReader(a.Stdin, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("standard input has more than %d MiB, which is too much for what it should be", most>>20)
	}
	return b, err
}

// readGiven reads a file that the command line names, if it has not more than most bytes. A pipe
// without a writer is empty, and is not waited for.
func readGiven(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read from only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b []byte
	if info.Size() <= most {
		b, err = io.ReadAll(io.LimitReader(f, most+1))
	}
	switch {
	case err != nil:
		return nil, err
	case info.Size() > most || int64(len(b)) > most:
		return nil, fmt.Errorf("%s has more than %d MiB, which is too much for what it should be", name, most>>20)
	case len(b) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return b, nil
}

// verifiers reads verifier keys that a flag gave.
func verifiers(keys []string, flag string) (list []note.Verifier, err error) {
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			continue // a key that is known twice is ambiguous to those who look for it
		}
		v, err := evidence.NewVerifier(k)
		if err != nil {
			return nil, exitcode.WithHint(exitcode.Usagef("%s: %w", flag, err), "a verifier key is one word, such as 'perlica log key show' prints")
		}
		list = append(list, v)
	}
	return list, nil
}
