package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxLinks is how many dangling links are followed one after the other.
const maxLinks = 40

// realPath is where a path leads once all links are followed. Its last elements need
// not exist; a link to something that does not exist yet leads there all the same.
// It returns false for a path that is not absolute or cannot be followed.
func realPath(p string) (string, bool) {
	if !filepath.IsAbs(p) {
		return "", false
	}
	return follow(filepath.Clean(p), maxLinks)
}

func follow(p string, left int) (string, bool) {
	if left == 0 {
		return "", false
	}
	real, err := filepath.EvalSymlinks(p)
	if err == nil {
		return real, true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	if to, err := os.Readlink(p); err == nil {
		if !filepath.IsAbs(to) {
			dir, ok := follow(filepath.Dir(p), left-1)
			if !ok {
				return "", false
			}
			to = filepath.Join(dir, to)
		}
		return follow(filepath.Clean(to), left-1)
	}
	parent := filepath.Dir(p)
	if parent == p {
		return "", false
	}
	dir, ok := follow(parent, left)
	if !ok {
		return "", false
	}
	return filepath.Join(dir, filepath.Base(p)), true
}

// resolved is the place with all links followed, for comparing with real paths.
func (p Place) resolved() Place {
	real := func(s string) string {
		if r, ok := realPath(s); ok {
			return r
		}
		return s
	}
	out := Place{Dir: real(p.Dir), Home: real(p.Home)}
	for _, t := range p.Temp {
		out.Temp = append(out.Temp, real(t))
	}
	return out
}
