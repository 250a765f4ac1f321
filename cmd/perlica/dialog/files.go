package dialog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/attachment"
)

// Files reads the files that flags name, each only once, because a pipe such as <(command) gives its content once.
// Only one goroutine may use a Files.
type Files struct {
	Stop <-chan fact.Stop // Receiving a value ends the reading with a *kernel.StoppedError.
	read map[string]content
}

type content struct {
	text []byte
	err  error
}

// ReadFile reads a file that a flag names and removes a byte order mark. Its error is a *kernel.StoppedError or a
// usage error that names the flag.
func (f Flags) ReadFile(flag, path string) ([]byte, error) {
	b, err := f.readOnce(flag, path)
	return bytes.TrimPrefix(b, []byte(frame.ByteOrderMark)), err
}

// readOnce returns the content of a file. If f.Files is not nil, later calls return the same content without reading.
func (f Flags) readOnce(flag, path string) ([]byte, error) {
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
	return c.text, c.err
}

// readFile reads a file in a goroutine of its own, because opening a pipe blocks until the pipe has a writer. The
// goroutine ends with the process at the latest.
func (f *Files) readFile(path string) content {
	done := make(chan content, 1)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			done <- content{nil, err}
			return
		}
		defer func() { _ = file.Close() }() // The file was only read, so a failed close loses no data.
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

// SavePipes returns the paths of the attachments. It saves the content of each pipe in a file of the project and
// returns the path of that file. The kernel reads an attachment twice, for its digest and for the prompt, and a pipe
// gives its content once.
func (f Flags) SavePipes(p *project.Project) ([]string, error) {
	paths := slices.Clone(f.Attach)
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			continue // The path stays in the list. If it cannot be read, the kernel refuses it later.
		}
		b, err := f.readOnce("--attach", path)
		if err != nil {
			return nil, err
		}
		own, err := p.Workspace.EnsureService()
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(b)
		if paths[i], err = attachment.Save(own.Files, hex.EncodeToString(sum[:]), i, "pipe", bytes.NewReader(b),
			frame.MaxInput); err != nil {
			return nil, err
		}
	}
	return paths, nil
}
