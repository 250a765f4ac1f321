package dialog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
)

// Files reads each file that flags name once, because a pipe such as <(command) gives its content only once. Only one
// goroutine may use it.
type Files struct {
	Stop <-chan kernel.Stop // A value ends the reading with a *kernel.StoppedError.
	read map[string]content
}

type content struct {
	text []byte
	err  error
}

// ReadFile reads a file that a flag names and removes a byte order mark. Its error is a *kernel.StoppedError or a
// usage error that names the flag.
func (f Flags) ReadFile(flag, path string) ([]byte, error) {
	files := f.Files
	if files == nil {
		files = &Files{}
	}
	c, ok := files.read[path]
	if !ok {
		c = files.readFile(path)
		if files.read == nil {
			files.read = map[string]content{}
		}
		files.read[path] = c
	}
	var stopped *kernel.StoppedError
	if c.err != nil && !errors.As(c.err, &stopped) {
		err := c.err
		var broken *fs.PathError
		if errors.As(err, &broken) {
			err = fmt.Errorf("%s: %w", broken.Path, broken.Err)
		}
		return nil, frame.UsageErrorf("%s: %w", flag, err)
	}
	return bytes.TrimPrefix(c.text, []byte("\xef\xbb\xbf")), c.err
}

// readFile reads a file in a goroutine of its own. Opening a pipe blocks until the pipe has a writer. The goroutine
// ends with the process at the latest.
func (f *Files) readFile(path string) content {
	done := make(chan content, 1)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			done <- content{nil, err}
			return
		}
		defer func() { _ = file.Close() }() // A file that was only read loses nothing.
		b, err := io.ReadAll(io.LimitReader(file, frame.MaxInput+1))
		done <- content{b, err}
	}()
	select {
	case c := <-done:
		return c
	case s := <-f.Stop:
		return content{nil, &kernel.StoppedError{Stop: s}}
	}
}
