package screen

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	maxPast  = 1000
	maxEntry = 8 << 10
)

// rememberLine adds a line to the history of this start and of later starts.
func (e *Editor) rememberLine(line string) {
	if strings.TrimSpace(line) == "" || len(line) > maxEntry {
		return
	}
	e.past = append(slices.DeleteFunc(e.past, func(s string) bool { return s == line }), line)
	if n := len(e.past) - maxPast; n > 0 {
		e.past = e.past[n:]
	}
	if e.o.Keep == nil {
		return
	}
	if whole := e.unfoldLabels(line); len(whole) <= maxEntry {
		line = whole
	}
	e.o.Keep(label().ReplaceAllString(line, "[pasted $1]"))
}

// label matches the label of a paste. The file of the history gets the label without its number. It then differs
// from the label of a later paste.
var label = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[pasted (\d+ (?:lines|KB)) #\d+\]`)
})

// LineHistory is a file of sent lines. Each row of the file is one line as a JSON string. Several processes may add
// lines.
type LineHistory struct{ Path string }

// Load returns the newest entries, the oldest of them first. It skips damaged entries.
func (h LineHistory) Load() ([]string, error) {
	b, err := os.ReadFile(h.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 16*maxEntry)
	for sc.Scan() {
		var s string
		if json.Unmarshal(sc.Bytes(), &s) == nil && s != "" {
			all = append(all, s)
		}
	}
	if n := len(all) - maxPast; n > maxPast { // The file may grow to twice the number of entries that the editor uses.
		all = all[n:]
		return all, h.rewrite(all)
	}
	return all[max(0, len(all)-maxPast):], nil
}

// Add appends an entry.
func (h LineHistory) Add(entry string) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func (h LineHistory) rewrite(entries []string) error {
	var b bytes.Buffer
	for _, s := range entries {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	tmp, err := os.CreateTemp(filepath.Dir(h.Path), "history-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b.Bytes())
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), h.Path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return err
}
