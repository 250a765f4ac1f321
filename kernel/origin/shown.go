package origin

import (
	"context"
	"errors"
	"io/fs"
)

// Shown is a change with its state in the file as it is now.
type Shown struct {
	Change
	// Now is empty if the change was not compared with the file.
	Now State `json:"now,omitempty"`
	// Diff is the change in the form of a unified diff, without line numbers. It is empty if the caller has not read it.
	Diff string `json:"diff,omitempty"`
}

// MaxFile is the maximum size of a file that is compared with the record, in bytes.
const MaxFile = 4 << 20

// MaxCompared is the maximum number of files that one list of changes is compared with.
const MaxCompared = 200

// Compare adds the present states of the changes. The function "read" returns the present content of a file. A
// missing file counts as empty. The agent chose the paths, so the function may refuse a file. Its changes have no
// states then. If the changes are of more than MaxCompared files, Compare reads no file.
func (v *View) Compare(ctx context.Context, list []Change, read func(path string) ([]byte, error)) (shown []Shown,
	tooMany int, err error) {
	shown = make([]Shown, len(list))
	files := map[string]*File{}
	for i, c := range list {
		shown[i].Change = c
		files[c.Path] = nil
	}
	if len(files) > MaxCompared {
		return shown, len(files), nil
	}
	for i, c := range list {
		if files[c.Path] == nil {
			f, err := v.states(ctx, c.Path, read)
			if err != nil {
				return nil, 0, err
			}
			files[c.Path] = &f
		}
		shown[i].Now = files[c.Path].StateOf(c)
	}
	return shown, 0, nil
}

// states returns the states of the changes of a file.
func (v *View) states(ctx context.Context, path string, read func(string) ([]byte, error)) (File, error) {
	content, err := read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return File{Path: path}, nil
	}
	f, err := v.Blame(ctx, []string{path}, string(content))
	f.Lines = nil // They would keep the whole content in memory.
	return f, err
}
