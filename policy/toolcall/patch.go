package toolcall

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/policy"
)

var (
	patchFile = lazily(`^\*\*\* (Add|Update|Delete|Move|Rename|Create) (?:File|to|File to): ?(.+)$`)
	patchMove = lazily(`^(?:\*\*\* )?(?:rename|copy|Rename|Copy|Move) (?:from|to)[: ] ?(.+)$`)
	diffGit   = lazily(`^diff --git "?(?:a/)?(.+?)"? "?(?:b/)?(.+?)"?$`)
	diffFile  = lazily(`^(?:---|\+\+\+) (.+)$`)
	mnemonic  = lazily(`^[ciow12]/(.+)$`)
	diffIndex = lazily(`^Index: (.+)$`)
	diffMode  = lazily(`^(?:new file mode|new mode) (\d+)$`)
	diffHunk  = lazily(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)
	hunksOnly = lazily(`^\s*(@@ |<{5,9} SEARCH\n|-{5,9} SEARCH\n)`) // changes of a file that another field names
	isPatch   = lazily(`(?m)^(\*\*\* Begin Patch|\*\*\* (Add|Update|Delete) File: |--- \S.*\n\+\+\+ \S|diff --git )`)
)

func (r *reader) patch(name, s string) {
	paths, removed, odd := patchPaths(s)
	if odd != "" {
		r.grave(name, s, odd)
	}
	if len(paths) == 0 {
		if hunksOnly().MatchString(s) {
			r.bodies = append(r.bodies, Diff{New: s})
			return
		}
		if isWord(s) {
			r.field(name, s, policy.Plain)
			return
		}
		r.unread(name, s)
		return
	}
	r.patched, r.unpatched = append(r.patched, paths...), append(r.unpatched, removed...)
	if len(r.call.Diffs) == 0 {
		r.bodies = append(r.bodies, Diff{New: s})
	}
}

// patches takes in the files that patches name, when all other paths are known.
func (r *reader) patches() {
	others := slices.Clone(r.paths)
	// The prefix of a side takes the place of the slash with which an absolute path begins: that path is
	// meant where the call names it elsewhere. Both are possible where it is not below the place of the call:
	// then "a/.env" beside "/.env" is that file of the place, and is judged as such.
	meant := func(p string) string {
		full := "/" + p
		if !filepath.IsLocal(p) || !slices.Contains(others, full) || !strings.HasPrefix(full, strings.TrimSuffix(r.place.Dir, "/")+"/") {
			return p
		}
		return full
	}
	for _, p := range r.patched {
		r.path(meant(p))
	}
	for _, p := range r.unpatched {
		r.removes = append(r.removes, r.absolute(meant(p)))
	}
}

// patchPaths returns the files that a patch names, in the forms of apply_patch and of diff, those of them
// that it removes, and why a person decides about it whatever the files are, or "".
func patchPaths(text string) (paths, removed []string, odd string) {
	var p patchReader
	for line := range strings.SplitSeq(text, "\n") {
		p.line(strings.TrimSuffix(line, "\r"))
	}
	return p.paths, p.removed, p.odd
}

type patchReader struct {
	paths, removed []string
	old, new       int    // lines of the hunk that are still to come
	before         string // the file that the next +++ line is about
	odd            string // why a person decides about the patch
}

func (p *patchReader) line(line string) {
	if p.old > 0 || p.new > 0 {
		switch {
		case strings.HasPrefix(line, "-"):
			p.old--
		case strings.HasPrefix(line, "+"):
			p.new--
		case !strings.HasPrefix(line, `\`):
			p.old, p.new = p.old-1, p.new-1
		}
		return
	}
	if m := diffHunk().FindStringSubmatch(line); m != nil {
		p.old, p.new = count(m[1]), count(m[2])
		return
	}
	if m := diffMode().FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "1006") && !strings.HasPrefix(m[1], "1007") {
		p.odd = "the patch makes a link or a special file, mode " + m[1]
	}
	if m := patchFile().FindStringSubmatch(line); m != nil {
		p.add(m[2])
		if m[1] == "Delete" {
			p.removed = append(p.removed, strings.TrimSpace(m[2]))
		}
		return
	}
	for _, form := range []*regexp.Regexp{patchMove(), diffGit(), diffIndex()} {
		if m := form.FindStringSubmatch(line); m != nil {
			for _, name := range m[1:] {
				p.add(p.unquote(name, strings.Contains(line, `"`)))
			}
			return
		}
	}
	if m := diffFile().FindStringSubmatch(line); m != nil {
		name, _, _ := strings.Cut(m[1], "\t") // what follows is a time
		name = strings.TrimSpace(name)
		p.file(strings.HasPrefix(line, "-"), p.unquote(name, strings.HasPrefix(name, `"`)))
	}
}

// unquote reads a name that stands in quotes as git and diff write them, with escapes of C. No program
// writes an escape for a letter or a dot.
func (p *patchReader) unquote(name string, quoted bool) string {
	name = strings.Trim(name, `"`)
	if !quoted || !strings.Contains(name, `\`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '\\' || i+1 == len(name) {
			b.WriteByte(name[i])
			continue
		}
		i++
		n := 0
		for n < 3 && i+n < len(name) && name[i+n] >= '0' && name[i+n] <= '7' {
			n++
		}
		if c, err := strconv.ParseUint(name[i:i+n], 8, 8); err == nil {
			b.WriteByte(byte(c))
			i += n - 1
			if c >= ' ' && c <= '~' {
				p.odd = "the patch hides a name of a file in escapes"
			}
		} else if j := strings.IndexByte("abfnrtv", name[i]); j >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[j])
		} else {
			b.WriteByte(name[i])
		}
	}
	return b.String()
}

// file takes a line that names one side of a diff. A file whose other side is /dev/null
// comes or goes; some agents put the prefix of a side before that, too. Of git's other prefixes
// (diff.mnemonicPrefix) it cannot be told whether they are folders: both files are named.
func (p *patchReader) file(old bool, name string) {
	if rest, ok := strings.CutPrefix(name, map[bool]string{true: "a/", false: "b/"}[old]); ok {
		name = rest
	} else if m := mnemonic().FindStringSubmatch(name); m != nil {
		p.add(m[1])
	}
	if name == "dev/null" {
		name = "/dev/null"
	}
	if !old && name == "/dev/null" && p.before != "" {
		p.removed = append(p.removed, p.before)
	}
	if p.before = ""; old {
		p.before = name
	}
	if name != "/dev/null" {
		p.add(name)
	}
}

func (p *patchReader) add(name string) {
	if name = strings.TrimSpace(name); name != "" {
		p.paths = append(p.paths, name)
	}
}

func count(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 1<<20 {
		return 0
	}
	return n
}
