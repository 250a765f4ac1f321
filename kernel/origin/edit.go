package origin

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/registry"
)

// edit is the content of a change of one file.
type edit struct {
	path     string
	old, new string
	created  bool // the file was missing or empty before, so that "new" is its whole content
	whole    bool // "new" is the whole content, and the content before is unknown
	all      bool // every place with "old" is replaced
	removes  bool // the file is removed
}

// editsOf returns the changes of files that a tool call describes. It reads the diffs of the call. If the call has no
// diff, it reads the tool's input by the known forms of the agent's tools. The parameter "created" is true if the
// record shows that the call made a new file.
func editsOf(agent registry.Known, dir string, created bool, call provider.ToolCall) (edits []edit) {
	for _, c := range call.Content {
		if c.Type != "diff" || c.Path == "" {
			continue
		}
		e := edit{path: c.Path, old: c.OldText, new: c.NewText, removes: c.Change == "delete"}
		if c.OldText == "" && !e.removes && c.Change != "update" {
			e.created = agent.Creates || created || c.Change == "add"
			e.whole = !e.created
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		edits = fromInput(agent, created, call.RawInput)
	}
	for i := range edits {
		if !filepath.IsAbs(edits[i].path) {
			edits[i].path = filepath.Join(dir, edits[i].path)
		}
		edits[i].path = filepath.Clean(edits[i].path)
	}
	return slices.DeleteFunc(edits, func(e edit) bool { return e.old == e.new && !e.created && !e.removes && !e.whole })
}

// fromInput returns the changes that the input of a tool describes. It uses the first form of the agent that fits.
func fromInput(agent registry.Known, created bool, input json.RawMessage) []edit {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return nil
	}
	for _, w := range agent.Writes {
		if edits := fromMembers(w, created, members); edits != nil {
			return edits
		}
	}
	return nil
}

func fromMembers(w registry.Write, created bool, members map[string]json.RawMessage) []edit {
	if w.Patch != "" {
		patch, _ := textOf(members, w.Patch)
		return readPatch(patch)
	}
	path, ok := textOf(members, w.Path)
	if !ok {
		return nil
	}
	if w.Text != "" {
		if text, ok := textOf(members, w.Text); ok {
			return []edit{{path: path, new: text, created: created, whole: !created}}
		}
		return nil
	}
	list := []map[string]json.RawMessage{members}
	if w.Edits != "" && json.Unmarshal(members[w.Edits], &list) != nil {
		return nil
	}
	var edits []edit
	for _, one := range list {
		before, ok := textOf(one, w.Old)
		after, also := textOf(one, w.New)
		if !ok || !also {
			return nil
		}
		var all bool
		_ = json.Unmarshal(one[w.All], &all) // a missing member means one place
		e := edit{path: path, old: before, new: after, all: all}
		if before == "" { // Some agents make a new file in this way, and others replace a whole file.
			e.created, e.whole = created, !created
		}
		edits = append(edits, e)
	}
	return edits
}

// textOf returns the text of a member. ok is false if the member is missing or is not a text.
func textOf(members map[string]json.RawMessage, name string) (s string, ok bool) {
	raw := members[name]
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}
