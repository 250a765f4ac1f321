package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// maxLinks is the maximum number of links to missing files that followLinks follows, one after another.
const maxLinks = 40

// realPath returns the path after all symbolic links. The last elements of the path need not exist. A link to a missing
// file leads to the path of the missing file. realPath returns false if the path is relative or cannot be resolved.
func realPath(p string) (string, bool) {
	if !filepath.IsAbs(p) {
		return "", false
	}
	real, ok := followLinks(filepath.Clean(p), maxLinks)
	if slices.Contains(strings.Split(filepath.ToSlash(p), "/"), "..") {
		// For link/.. some programs remove both names, and others take the parent of the link's target. If the two
		// paths differ, the target is unknown.
		if walked, known := followElements(p); !known || walked != real {
			return "", false
		}
	}
	return real, ok
}

// followElements resolves a path element by element, as the operating system does: ".." after a link is the parent of
// the link's target.
func followElements(p string) (string, bool) {
	at := filepath.VolumeName(p) + string(filepath.Separator)
	for _, name := range strings.Split(filepath.ToSlash(p[len(filepath.VolumeName(p)):]), "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		var ok bool
		if at, ok = followLinks(filepath.Join(at, name), maxLinks); !ok {
			return "", false
		}
	}
	return at, true
}

func followLinks(p string, left int) (string, bool) {
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
			dir, ok := followLinks(filepath.Dir(p), left-1)
			if !ok {
				return "", false
			}
			to = filepath.Join(dir, to)
		}
		return followLinks(filepath.Clean(to), left-1)
	}
	parent := filepath.Dir(p)
	if parent == p {
		return "", false
	}
	dir, ok := followLinks(parent, left)
	if !ok {
		return "", false
	}
	return filepath.Join(dir, filepath.Base(p)), true
}

// realOr returns the target of a path, or the path itself if the target is unknown.
func realOr(p string) string {
	if real, ok := realPath(p); ok {
		return real
	}
	return p
}

// resolved returns the place with all symbolic links in its paths resolved, for comparisons with results of realPath.
func resolved(p shell.Place) shell.Place {
	all := func(paths []string) (out []string) {
		for _, path := range paths {
			out = append(out, realOr(path))
		}
		return out
	}
	return shell.Place{Dir: realOr(p.Dir), Home: realOr(p.Home), Temp: all(p.Temp), Own: all(p.Own)}
}

// Targets maps each path of the request with a symbolic link to the path without links. The value is empty if it is
// unknown.
func (r Request) Targets() map[string]string {
	var list map[string]string
	for _, p := range r.Paths {
		real, ok := realPath(p)
		if ok && real == filepath.Clean(p) {
			continue
		}
		if list == nil {
			list = map[string]string{}
		}
		list[p] = real
	}
	return list
}

// samePath reports whether two paths lead to the same file.
func samePath(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	realA, okA := realPath(a)
	realB, okB := realPath(b)
	return okA && okB && realA == realB
}

// sameDir reports whether two paths lead to the same directory. A path that cannot be resolved is compared as it is.
func sameDir(a, b string) bool {
	rel, err := filepath.Rel(realOr(a), realOr(b))
	return err == nil && rel == "."
}
