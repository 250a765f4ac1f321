package shell

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
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
)

// Patch has the files that a patch changes. The patch is in the format of apply_patch or of diff.
type Patch struct {
	Paths   []string      // the files that the patch names
	Removed []string      // the files that the patch removes
	Odd     *message.Text // the reason for asking about this patch, independent of the places of its files, or nil
}

// PatchFiles finds the names of files in the text of a patch.
func PatchFiles(text string) Patch {
	var p patchReader
	for line := range strings.SplitSeq(text, "\n") {
		p.readLine(strings.TrimSuffix(line, "\r"))
	}
	return p.Patch
}

type patchReader struct {
	Patch
	old, new int    // numbers of old and new lines that are left in the hunk
	before   string // the name in the last --- line
}

func (p *patchReader) readLine(line string) {
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
		p.old, p.new = hunkLength(m[1]), hunkLength(m[2])
		return
	}
	if m := diffMode().FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "1006") &&
		!strings.HasPrefix(m[1], "1007") {
		p.Odd = whyPatchLink.With(m[1])
	}
	if m := patchFile().FindStringSubmatch(line); m != nil {
		p.addPath(m[2])
		p.addPath(strings.Trim(strings.TrimSpace(m[2]), `"'`))
		if m[1] == "Delete" {
			p.Removed = append(p.Removed, strings.TrimSpace(m[2]))
		}
		return
	}
	for _, form := range []*regexp.Regexp{patchMove(), diffGit(), diffIndex()} {
		if m := form.FindStringSubmatch(line); m != nil {
			for _, name := range m[1:] {
				p.addPath(p.unquoteName(name, strings.Contains(line, `"`)))
			}
			return
		}
	}
	if m := diffFile().FindStringSubmatch(line); m != nil {
		name, _, _ := strings.Cut(m[1], "\t") // diff writes a tab and a time after the name
		name = strings.TrimSpace(name)
		p.readFileLine(strings.HasPrefix(line, "-"), p.unquoteName(name, strings.HasPrefix(name, `"`)))
	}
}

// unquoteName returns the name of a file without quotes and without the C escapes of git and diff. If an escape
// stands for a printable character, the person is asked: no program writes such an escape, so it may hide the name.
func (p *patchReader) unquoteName(name string, quoted bool) string {
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
				p.Odd = whyPatchEscapes
			}
		} else if j := strings.IndexByte("abfnrtv", name[i]); j >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[j])
		} else {
			b.WriteByte(name[i])
		}
	}
	return b.String()
}

// readFileLine reads the name in a line --- or +++ of a diff. The parameter "old" says that it is the line ---. A
// line +++ with /dev/null means that the diff removes the file. Some agents put a prefix such as b/ before
// /dev/null, too. With the setting "diff.mnemonicPrefix", git writes other prefixes, such as i/. Such a prefix may
// also be a folder, so readFileLine adds the name with and without the prefix.
func (p *patchReader) readFileLine(old bool, name string) {
	if rest, ok := strings.CutPrefix(name, map[bool]string{true: "a/", false: "b/"}[old]); ok {
		name = rest
	} else if m := mnemonic().FindStringSubmatch(name); m != nil {
		p.addPath(m[1])
	}
	if name == "dev/null" {
		name = "/dev/null"
	}
	if !old && name == "/dev/null" && p.before != "" {
		p.Removed = append(p.Removed, p.before)
	}
	if p.before = ""; old {
		p.before = name
	}
	if name != "/dev/null" {
		p.addPath(name)
	}
}

func (p *patchReader) addPath(name string) {
	if name = strings.TrimSpace(name); name != "" {
		p.Paths = append(p.Paths, name)
	}
}

func hunkLength(s string) int {
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 1<<20 {
		return 0
	}
	return n
}

// judgePatchInput judges the files in a patch that patch or git apply reads from its standard input. It does not read
// patch files on disk.
func (w *walker) judgePatchInput(name string, fs []field, st *state, in flow) {
	if name == "git" {
		_, rest := options(fs[1:], gitValued, true)
		if len(rest) == 0 || rest[0].text != "apply" && rest[0].text != "am" {
			return
		}
		fs = rest
	} else if name != "patch" && name != "gpatch" {
		return
	}
	for _, f := range valuesOf(fs, []string{"--directory"}) {
		w.judgeWrite(*part(f, path.Join(f.text, "config")), st, deedWrites.With(f.src))
	}
	for _, f := range fs[1:] {
		if w.outside(f, st) {
			w.askBecause(whyOuterPatch, shown(fs))
		}
		if w.runsForeign(f, st) || w.originOf(f, st).is(altered) {
			w.askUnknown(whyUnknownFiles, shown(fs))
		}
	}
	if !in.piped {
		return
	}
	if in.origin.is(elsewhere) {
		w.askBecause(whyOuterPatch, shown(fs))
	}
	if in.origin.is(foreign | altered) {
		w.askUnknown(whyUnknownFiles, shown(fs))
	}
	w.judgePatch(PatchFiles(in.text), literal(in.text), fs, st)
}

// judgePatch judges the files that a patch writes or removes. The parameter "from" is the field with the text of the
// patch.
func (w *walker) judgePatch(p Patch, from field, fs []field, st *state) {
	if p.Odd != nil {
		w.askBecause(whyOdd, p.Odd, shown(fs))
	}
	for _, file := range p.Removed {
		w.judgeDestroy(*part(from, file), st, false, verbRemoves, fs)
	}
	for _, file := range p.Paths {
		w.judgeWrite(*part(from, file), st, deedWrites.With(file))
	}
}
