package origin

import "strings"

// readPatch returns the changes of a patch in the form of apply_patch:
//
//	*** Begin Patch
//	*** Update File: a.go
//	@@ func main() {
//	 context
//	-old
//	+new
//	*** Add File: b.go
//	+content
//	*** Delete File: c.go
//	*** End Patch
//
// It returns nil for any other text. A renamed file has a change at its new path.
func readPatch(text string) []edit {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] != "*** Begin Patch" {
		return nil
	}
	p := patchReader{}
	for _, line := range lines[1:] {
		p.readLine(line)
	}
	p.endHunk()
	return p.edits
}

type patchReader struct {
	edits    []edit
	path     string
	adds     bool // the present file is new
	old, new strings.Builder
}

func (p *patchReader) readLine(line string) {
	for _, mark := range []string{"Update", "Add", "Delete"} {
		if path, ok := strings.CutPrefix(line, "*** "+mark+" File: "); ok {
			p.endHunk()
			p.path, p.adds = strings.TrimSpace(path), mark == "Add"
			if mark == "Delete" {
				p.edits = append(p.edits, edit{path: p.path, removes: true})
			}
			return
		}
	}
	if path, ok := strings.CutPrefix(line, "*** Move to: "); ok {
		p.path = strings.TrimSpace(path)
		return
	}
	switch {
	case p.path == "", strings.HasPrefix(line, "*** "):
	case strings.HasPrefix(line, "@@"):
		p.endHunk()
	case strings.HasPrefix(line, "+"):
		p.new.WriteString(line[1:] + "\n")
	case strings.HasPrefix(line, "-"):
		p.old.WriteString(line[1:] + "\n")
	default:
		context := strings.TrimPrefix(line, " ") + "\n"
		p.old.WriteString(context)
		p.new.WriteString(context)
	}
}

// endHunk adds the change of the present hunk, if it has lines.
func (p *patchReader) endHunk() {
	if p.old.Len()+p.new.Len() > 0 {
		p.edits = append(p.edits, edit{path: p.path, old: p.old.String(), new: p.new.String(), created: p.adds})
	}
	p.old.Reset()
	p.new.Reset()
}
