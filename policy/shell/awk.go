package shell

import "strings"

// awk judges programs that call system, read from or write to a command, or write to a
// file.
func (w *walker) awk(fs []field, st *state, in flow) {
	opts, operands := options(fs[1:], "vFfieEl --assign --field-separator --file --source --include --load --exec", true)
	var programs []field
	fromFile := false
	for _, o := range opts {
		switch o.name {
		case "-e", "--source":
			programs = append(programs, deref(o.value)...)
		case "-f", "--file", "-E", "--exec":
			fromFile = true
			if o.value != nil && isStdin(o.value.text) && in.known {
				programs = append(programs, literal(in.text))
			} else if o.value != nil && w.runsForeign(*o.value, st) {
				w.unknown("runs what it downloads or decodes: %s", shown(fs))
			}
		case "-i", "--include":
			if o.value != nil && o.value.text == "inplace" && len(operands) > 1 {
				w.writeAll(operands[1:], st, "edits ")
			}
		}
	}
	if len(programs) == 0 && !fromFile && len(operands) > 0 {
		programs = append(programs, operands[0])
	}
	for _, p := range programs {
		if what := awkEscape(p.text); what != "" {
			w.ask("a program that %s: %s", what, shown(fs))
		}
		for _, text := range awkCommands().FindAllStringSubmatch(p.text, 16) {
			command := strings.ReplaceAll(text[1]+text[2]+text[3], `\"`, `"`)
			w.nested(command, p, st.child(nil), flow{})
		}
	}
}

var (
	awkCommands = lazily(`system\s*\(\s*"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|&?\s*getline|\|&?\s*"((?:[^"\\]|\\.)*)"`)
	awkCalls    = lazily(`\bsystem\s*\(|\|&?\s*getline|@load|@include|\bprintf?\b[^;}\n]*\|&?\s*["\w$]`)
	awkStrings  = lazily(`"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)+/`)
)

// awkEscape says what an awk program does beyond printing, if anything.
func awkEscape(text string) string {
	// Strings and patterns are emptied first: what stands in them is text.
	code := awkStrings().ReplaceAllStringFunc(text, func(s string) string {
		switch strings.Trim(s, `"`) {
		case "/dev/stderr", "/dev/stdout", "/dev/null", "cat", "cat 1>&2", "sort", "sort -n", "sort -rn", "cat >&2":
			return " QUIET "
		}
		if s[0] == '/' {
			return " 1 "
		}
		return `""`
	})
	if calls := awkCalls().FindString(code); calls != "" && !strings.HasSuffix(calls, "Q") {
		return "runs commands"
	}
	for _, statement := range strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(";{}\n", r) }) {
		if writesFile(statement) {
			return "writes to a file"
		}
	}
	return ""
}

// writesFile says whether a statement of awk prints to something with > or >>. Inside
// parentheses the sign compares.
func writesFile(statement string) bool {
	at := strings.Index(statement, "print")
	if at < 0 {
		return false
	}
	depth := 0
	for i := at; i < len(statement); i++ {
		switch statement[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '>':
			rest := strings.TrimLeft(statement[i:], "> ")
			if depth == 0 && !strings.HasPrefix(statement[i:], ">=") {
				return !strings.HasPrefix(rest, "QUIET")
			}
		}
	}
	return false
}
