package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

var (
	hunksOnly = lazily(`^\s*(@@ |<{5,9} SEARCH\n|-{5,9} SEARCH\n)`) // a patch that does not name its file
	isPatch   = lazily(`(?m)^(\*\*\* Begin Patch|\*\*\* (Add|Update|Delete) File: |--- \S.*\n\+\+\+ \S|diff --git )`)
)

func (r *reader) readPatch(name, s string) {
	p := shell.PatchFiles(s)
	if p.Odd != nil {
		r.addGrave(name, s, p.Odd)
	}
	if len(p.Paths) == 0 {
		if hunksOnly().MatchString(s) {
			r.bodies = append(r.bodies, Diff{New: s, patch: true})
			return
		}
		if isWord(s) {
			r.addField(name, s, Plain)
			return
		}
		r.addUnread(name, s)
		return
	}
	r.patched, r.unpatched = append(r.patched, p.Paths...), append(r.unpatched, p.Removed...)
	if len(r.call.Diffs) == 0 {
		r.bodies = append(r.bodies, Diff{New: s, patch: true})
	}
}

// addPatchedPaths adds the files that patches name. It runs after all other paths are known.
func (r *reader) addPatchedPaths() {
	others := slices.Clone(r.paths)
	// A patch may write an absolute path without its first slash. If the call also names the path with its slash,
	// and this path lies in the working directory, the patch means this absolute path. Otherwise the path is
	// relative to the working directory.
	meant := func(p string) string {
		full := "/" + p
		if !filepath.IsLocal(p) || !slices.Contains(others, full) ||
			!strings.HasPrefix(full, strings.TrimSuffix(r.place.Dir, "/")+"/") {
			return p
		}
		return full
	}
	for _, p := range r.patched {
		r.addPath(meant(p))
	}
	for _, p := range r.unpatched {
		r.removes = append(r.removes, r.absolute(meant(p)))
	}
}
