package origin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// File is a file as it is now, with its recorded changes.
type File struct {
	Path string `json:"path"`
	// Changes are the recorded changes of the file, oldest first.
	Changes []Change `json:"changes"`
	Lines   []Line   `json:"lines"`
	// States says for each change how much of it is in the file.
	States []State `json:"states"`
}

// Line is a line of a file.
type Line struct {
	Text string `json:"text"`
	// Change is the index of the line's change in File.Changes. It is -1 if the origin is unknown.
	Change int `json:"change"`
}

// State says how much of a change is in the file now.
type State string

// These are the states of a change.
const (
	// Present means that the file has the new content of the change exactly as recorded, apart from later recorded
	// changes.
	Present State = "present"
	// Partly means that some lines of the change are in the file, and the place was changed without a record.
	Partly State = "partly"
	// Absent means that no line of the change was found in the file.
	Absent State = "absent"
	// Replaced means that a later recorded change wrote the file again, or that the change cannot be compared.
	Replaced State = "replaced"
)

// Blame returns the lines of a file with their changes. The parameter "paths" has the absolute paths of the file: the
// given one, and others if symbolic links lead to it. The parameter "content" is the present content of the file. A
// change that perhaps did not happen is not the origin of any line.
func (v *View) Blame(ctx context.Context, paths []string, content string) (File, error) {
	changes, err := v.Changes(ctx, Wanted{Paths: paths})
	if err != nil {
		return File{}, err
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Inferred || !slices.Contains(paths, c.Path) })
	f := File{Path: paths[0], Changes: changes, States: make([]State, len(changes))}
	r := newReplay(content)
	texts := map[string]bool{}
	for _, text := range splitLines(content) {
		texts[text] = true
	}
	more := true
	for n := len(changes) - 1; n >= 0; n-- {
		c := changes[n]
		f.States[n] = Replaced
		if err := ctx.Err(); err != nil {
			return File{}, err
		}
		if !more {
			continue
		}
		e, ok, err := v.content(ctx, c)
		if err != nil {
			return File{}, err
		}
		if !ok { // The content was pruned, so nothing is known about the file before this change.
			more = false
			continue
		}
		if c.Perhaps { // The step lets older changes find their place, and its lines stay unknown.
			f.States[n] = ""
			if !e.created && !e.whole && !e.removes {
				r.step(unknown, e)
			}
			continue
		}
		var found bool
		if found, more = r.step(n, e); found {
			f.States[n] = Present
		} else if f.States[n] = Absent; addsOneOf(e, texts) {
			f.States[n] = Partly
		}
	}
	for i, text := range splitLines(content) {
		f.Lines = append(f.Lines, Line{text, r.origin[i]})
	}
	if last := len(f.Lines) - 1; f.Lines[last].Text == "" { // the part after the last line feed is no line
		f.Lines = f.Lines[:last]
	}
	return f, nil
}

// addsOneOf reports whether a change adds a line with one of these texts. Blank lines do not count.
func addsOneOf(e edit, texts map[string]bool) bool {
	after := splitLines(e.new)
	for j, i := range match(splitLines(e.old), after) {
		if i == unmatched && texts[after[j]] && strings.TrimSpace(after[j]) != "" {
			return true
		}
	}
	return false
}

// StateOf returns the state of a change of the file. It is empty if the file has no such change.
func (f *File) StateOf(c Change) State {
	i := slices.IndexFunc(f.Changes, func(o Change) bool {
		return o.Run == c.Run && o.Call == c.Call && o.source.Nth == c.source.Nth && o.Path == c.Path
	})
	if i < 0 {
		return ""
	}
	return f.States[i]
}

// Diff returns a change in the form of a unified diff without line numbers. It is empty if the content of the change
// is no longer on record.
func (v *View) Diff(ctx context.Context, c Change) (string, error) {
	e, ok, err := v.content(ctx, c)
	if err != nil || !ok {
		return "", err
	}
	return diffText(e), nil
}

// content reads the content of a change from the log.
func (v *View) content(ctx context.Context, c Change) (edit, bool, error) {
	var call provider.ToolCall
	for _, seq := range []event.Seq{c.source.Args, c.source.Diff} {
		if seq == 0 {
			continue
		}
		e, ok, err := v.log.Last(ctx, event.Query{After: seq - 1, Until: seq})
		if err != nil {
			return edit{}, false, err
		}
		if !ok || e.Payload == nil {
			return edit{}, false, nil
		}
		t, ok := reported(e.Payload)
		if !ok {
			return edit{}, false, fmt.Errorf("origin: event %d has no tool call", seq)
		}
		if seq == c.source.Args {
			call.RawInput = t.RawInput
		}
		if seq == c.source.Diff {
			call.Content = t.Content
		}
	}
	known, _ := registry.Lookup(c.source.Agent)
	edits := editsOf(known, c.source.Dir, c.source.Created, call)
	if c.source.Nth >= len(edits) || edits[c.source.Nth].path != c.Path {
		return edit{}, false, fmt.Errorf("origin: the content of the change of %s in run %s is not on record", c.Path, c.Run)
	}
	return edits[c.source.Nth], true, nil
}

// reported returns the tool call in a recorded line.
func reported(payload []byte) (provider.ToolCall, bool) {
	if u, ok := provider.ParseUpdate(payload, ""); ok && u.Tool != nil {
		return *u.Tool, true
	}
	if p, ok := provider.ParsePermission(payload); ok {
		return p.Tool, true
	}
	return provider.ToolCall{}, false
}
