package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/policy/shell"
)

// member is one name of a JSON object and its value. A name may occur twice. Some agents use the first value and others
// the last, so the reader reads both.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of an object in their order. ok is false if the value is not an object.
func members(raw json.RawMessage) (list []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m.name, ok = name.(string)
		if !ok || d.Decode(&m.value) != nil {
			return nil, false
		}
		list = append(list, m)
	}
	return list, true
}

func elements(raw json.RawMessage) (list []json.RawMessage, ok bool) {
	return list, len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil
}

func textOf(raw json.RawMessage) (s string, ok bool) {
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

// words returns the elements of a JSON list as texts. ok is false if the value is not a list of texts, numbers, true
// and false.
func words(raw json.RawMessage) (out []string, ok bool) {
	list, ok := elements(raw)
	for _, e := range list {
		s, isText := textOf(e)
		switch {
		case isText:
		case len(e) > 0 && strings.IndexByte(`{["n`, e[0]) < 0:
			s = string(e)
		default:
			return nil, false
		}
		out = append(out, s)
	}
	return out, ok
}

// readInput reads the input of the tool, the rawInput of the call.
func (r *reader) readInput(raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	r.left = maxValues
	top := &scope{}
	r.scopes = []*scope{top}
	r.given = len(raw) > 0 && string(raw) != "null"
	switch s, isText := textOf(raw); {
	case len(raw) == 0 || string(raw) == "null":
	case isText && r.isExecute() && !isPatch().MatchString(s):
		top.commands = append(top.commands, shell.Command{Text: s})
	case !isText && raw[0] != '{' && raw[0] != '[':
		r.addUnread("input", string(raw))
	default:
		r.readValue("input", raw, input, 0)
	}
	r.commands = append(r.commands, r.combineScope(top)...)
}

func (r *reader) scope() *scope { return r.scopes[len(r.scopes)-1] }

// readObject reads the members of an object. The name of an inner member begins with the names of its objects, as
// in env.PATH.
func (r *reader) readObject(name string, list []member, depth int) {
	hands := slices.ContainsFunc(list, func(m member) bool { return slices.Contains(handed, plainName(m.name)) })
	for _, m := range list {
		full := m.name
		if depth > 0 {
			full = name + "." + m.name
		}
		role := r.roleOf(m.name)
		value := shown(bytes.TrimSpace(m.value))
		always, beside := r.widens(m.name, value, role)
		switch {
		case always:
			r.addGrave(full, value, whyMoreRights)
			continue
		case beside:
			r.beside = append(r.beside, Field{Name: full, Value: value})
		}
		if role == unknown && strings.ContainsAny(m.name, "/\\") {
			r.addPath(m.name) // the names of the object are paths of files
		}
		if role == body || role == patch || role == unknown && bodies()[plainName(m.name)] == body {
			r.changes = true
		}
		r.readValue(full, bytes.TrimSpace(m.value), role, depth+1)
		r.judgeName(full, value, hands && plainName(m.name) == "name")
	}
}

// handed are names of members with the arguments of another tool. In an object with such a member, the member "name" is
// the name of that tool.
var handed = []string{"arguments", "args", "params", "parameters", "input", "toolinput", "server", "servername",
	"mcpserver"}

// readValue reads one value. The parameter "as" is the role that follows from the name of the value.
func (r *reader) readValue(name string, raw json.RawMessage, as role, depth int) {
	if r.left--; r.left < 0 || depth > maxDepth {
		if r.left == -1 || depth > maxDepth {
			r.addUnread(name, "too much to be read")
		}
		return
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case as == inert:
		r.addField(name, shown(raw), Inert)
	case as == text:
		r.addField(name, shown(raw), Plain)
	case raw[0] == '{' && as == env:
		r.readVariables(name, raw)
	case raw[0] == '{':
		list, ok := members(raw)
		if !ok {
			r.addUnread(name, string(raw))
		}
		r.readObject(name, list, depth)
	case raw[0] == '[':
		r.readList(name, raw, as, depth)
	case raw[0] == '"':
		s, _ := textOf(raw)
		if r.isEnclosedJSON(s, as) {
			r.readValue(name, json.RawMessage(strings.TrimSpace(s)), as, depth+1)
			return
		}
		if (as == input || as == args) && r.holdsCommand(json.RawMessage(s), depth) {
			// The text may be the standard input of the command, or JSON that the tool decodes. The reader cannot tell,
			// so it reads the text both ways.
			r.scopes = append(r.scopes, &scope{})
			r.readValue(name, json.RawMessage(strings.TrimSpace(s)), unknown, depth+1)
			r.leaveScope()
		}
		r.readText(name, s, as)
	case commands[as] && raw[0] != 't' && raw[0] != 'f':
		r.addGarbled(name, string(raw))
	default: // a number, true or false
		r.addField(name, string(raw), Plain)
	}
}

// commands are the roles of values that should be commands.
var commands = map[role]bool{command: true, commandList: true, program: true, argv: true, script: true}

// addGarbled records a value that should be a command and is not one.
func (r *reader) addGarbled(name, value string) {
	r.lost = r.lost || r.isExecute()
	r.addUnread(name, value)
}

// shown returns a JSON text without its quotes and escapes, and any other value as JSON.
func shown(raw json.RawMessage) string {
	if s, ok := textOf(raw); ok {
		return s
	}
	return string(raw)
}

// readList reads a list. The list is one command in words, or it has several values with the same role.
func (r *reader) readList(name string, raw json.RawMessage, as role, depth int) {
	if all, isWords := words(raw); isWords && r.readWords(name, all, as) {
		return
	}
	list, ok := elements(raw)
	if !ok {
		r.addUnread(name, string(raw))
		return
	}
	if as == commandList || as == args {
		as = command
	}
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", name, i)
		e = bytes.TrimSpace(e)
		if commands[as] && string(e) == "null" {
			r.addGarbled(at, "null")
		}
		if len(e) == 0 || e[0] != '{' {
			r.readValue(at, e, as, depth+1)
			continue
		}
		r.scopes = append(r.scopes, &scope{})
		r.readValue(at, e, as, depth+1)
		r.leaveScope()
	}
}

// readWords reads a list of words that together are one command, its arguments or its variables. It returns false if
// each word is a separate value.
func (r *reader) readWords(name string, all []string, as role) bool {
	s := r.scope()
	switch {
	case len(all) == 0 && commands[as]:
		r.lost = r.lost || r.isExecute()
	case len(all) == 0:
		r.addField(name, "[]", Plain)
	case as == argv && strings.TrimSpace(all[0]) != "":
		s.argv = append(s.argv, all...)
	case (as == command || as == program) && strings.TrimSpace(all[0]) != "":
		s.commands = append(s.commands, shell.Command{Argv: all})
	case as == args:
		s.addArgs(name, all)
	case as == env:
		s.env, s.envName = append(s.env, all...), name
	default:
		return false
	}
	return true
}

// isEnclosedJSON reports whether a text is probably JSON that the tool will decode. Some tools pass the arguments of
// another tool as such a text.
func (r *reader) isEnclosedJSON(s string, as role) bool {
	s = strings.TrimSpace(s)
	return (as == unknown || (as == args || as == input) && !r.isExecute()) && s != "" &&
		(s[0] == '{' || s[0] == '[') && json.Valid([]byte(s))
}

// holdsCommand reports whether a value is JSON in which a member at any depth has a name for commands.
func (r *reader) holdsCommand(raw json.RawMessage, depth int) bool {
	raw = bytes.TrimSpace(raw)
	if r.left--; r.left < 0 || depth > maxDepth || !json.Valid(raw) {
		return false
	}
	list, _ := members(raw)
	for _, m := range list {
		if commands[r.roleOf(m.name)] || r.holdsCommand(m.value, depth+1) {
			return true
		}
	}
	parts, _ := elements(raw)
	return slices.ContainsFunc(parts, func(e json.RawMessage) bool { return r.holdsCommand(e, depth+1) })
}

// editing are the verbs of editor tools. Such tools send the verb in the field "command", where other tools have a
// shell command.
var editing = []string{"view", "create", "str_replace", "insert", "undo_edit", "write", "edit", "delete", "rename",
	"read"}

// readText reads a text. The parameter "as" is the role that follows from the name of the text.
func (r *reader) readText(name, s string, as role) {
	top := r.scope()
	switch as {
	case command, commandList, program, argv:
		r.readCommand(name, s)
	case script:
		top.scripts = append(top.scripts, shell.Command{Text: s})
	case args:
		top.argsText, top.argsName = strings.TrimSpace(top.argsText+" "+s), name
	case stdin:
		top.stdin = append(top.stdin, Field{Name: name, Value: s})
	case input:
		if isPatch().MatchString(s) {
			r.readPatch(name, s)
			return
		}
		top.stdin = append(top.stdin, Field{Name: name, Value: s})
	case env:
		r.addUnread(name, s)
	case dir:
		if s != "" {
			top.dirs = append(top.dirs, r.absolute(s))
		}
	case path:
		r.addPath(s)
	case glob:
		r.addField(name, s, Plain)
		r.addGlob(s)
	case patch:
		r.readPatch(name, s)
	case body:
		r.addBody(name, s)
	case mode:
		r.readMode(name, s)
	case address:
		r.readAddress(name, s)
	default:
		r.readUnknown(name, s)
	}
}

// readCommand reads a text that is a command, or a verb in editing.
func (r *reader) readCommand(name, s string) {
	switch {
	case !r.isExecute() && slices.Contains(editing, s):
		r.addField(name, s, Plain)
		r.changes = r.changes || s != "view" && s != "read"
		r.deletes = r.deletes || s == "delete"
	case strings.TrimSpace(s) == "":
		r.lost = r.lost || r.isExecute()
	default:
		top := r.scope()
		top.commands = append(top.commands, shell.Command{Text: s})
	}
}

func (r *reader) readUnknown(name, s string) {
	if isWord(s) {
		r.addField(name, s, Plain)
		return
	}
	r.addUnread(name, s)
}

// readVariables reads an object with environment variables.
func (r *reader) readVariables(name string, raw json.RawMessage) {
	list, ok := members(raw)
	if !ok {
		r.addUnread(name, string(raw))
		return
	}
	s := r.scope()
	if v, ok := namedValue(list); ok {
		s.env, s.envName = append(s.env, v), name
		return
	}
	for _, m := range list {
		value := bytes.TrimSpace(m.value)
		if len(value) > 0 && (value[0] == '{' || value[0] == '[') {
			r.addUnread(name+"."+m.name, string(value))
			continue
		}
		if string(value) != "null" {
			s.env, s.envName = append(s.env, m.name+"="+shown(value)), name
		}
	}
}

// namedValue reads {"name": NAME, "value": VALUE} as NAME=VALUE.
func namedValue(list []member) (string, bool) {
	var name, value string
	found := 0
	for _, m := range list {
		switch plainName(m.name) {
		case "name", "key", "variable":
			s, ok := textOf(bytes.TrimSpace(m.value))
			if !ok {
				return "", false
			}
			name, found = s, found|1
		case "value":
			value, found = shown(bytes.TrimSpace(m.value)), found|2
		}
	}
	return name + "=" + value, found == 3 && len(list) == 2
}

func (r *reader) addBody(name, s string) {
	if isPatch().MatchString(s) && strings.Contains(s, "*** ") {
		r.readPatch(name, s)
		return
	}
	part := Diff{New: s}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if n := plainName(last); strings.HasPrefix(n, "old") || n == "search" {
		part = Diff{Old: s}
	}
	if n := len(r.bodies) - 1; n >= 0 && r.bodies[n].New == "" && part.Old == "" {
		r.bodies[n].New = s
		return
	}
	r.bodies = append(r.bodies, part)
}

// setuid matches file modes such as 4755 and u+s. A program with such a mode runs with the rights of its owner or
// group.
var setuid = lazily(`^0*[2-7][0-7]{3}$|^[ugoa]*[+=][rwxt]*s`)

// readMode reads a mode: the mode of an agent, of a sandbox or of a file. A mode in which an agent asks for fewer
// permissions makes the request unreadable, except in a call of kind read or search.
func (r *reader) readMode(name, s string) {
	if r.call.Kind == "switch_mode" {
		r.mode = s
		r.addField(name, s, Plain)
		return
	}
	if setuid().MatchString(s) {
		r.addGrave(name, s, whyRunsAsOwner)
		return
	}
	if stopsAsking(s) && r.call.Kind != "read" && r.call.Kind != "search" {
		r.addUnread(name, s)
		return
	}
	r.readUnknown(name, s)
}

func (r *reader) readAddress(name, s string) {
	lower := strings.ToLower(s)
	switch {
	case strings.HasPrefix(lower, "file:"):
		r.addPath(s)
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
		r.addField(name, s, Plain)
	case strings.Contains(s, ":"):
		r.addUnread(name, s)
	default:
		r.addPath(s)
	}
}
