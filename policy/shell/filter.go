package shell

import (
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
)

// sed judges the scripts of the program sed. In such a script the command e runs a shell command, and w writes to a
// file.
func (w *walker) sed(fs []field, st *state, in flow) {
	opts, operands := options(fs[1:], "efl --expression --file --line-length", false)
	scripts := values(opts, "-e", "--expression")
	given := slices.ContainsFunc(opts, func(o option) bool {
		return slices.Contains([]string{"-e", "--expression", "-f",
			"--file"}, o.name)
	})
	if !given && len(operands) > 0 {
		scripts = append(scripts, operands[0])
		if operands[0].text == "" && len(operands) > 1 { // sed -i '' SCRIPT, as BSD needs it
			scripts = append(scripts, operands[1])
		}
	}
	for _, f := range values(opts, "-f", "--file") {
		if script, ok := handed(f, in); ok {
			scripts = append(scripts, script)
		}
	}
	for _, s := range scripts {
		if command, runs, writes := sedEscapes(s.text); runs {
			w.askBecause(whyScriptRuns, shown(fs))
			w.walkNested(command, s, st.child(nil), flow{})
		} else if writes && command != "/dev/stdout" && command != "/dev/stderr" {
			w.askBecause(whyScriptWrites, shown(fs))
			w.judgeWrite(*part(s, command), st, deedWrites.With(command))
		}
	}
}

// sedAddress matches the address before a sed command.
var sedAddress = lazily(`^\s*(?:(?:[0-9]+|\$|/(?:[^/\\\n]|\\.)*/[IM]*|` +
	`\\(.)[^\n]*?)(?:~[0-9]+)?(?:\s*,\s*[+~]?(?:[0-9]+|\$|/(?:[^/\\\n]|\\.)*/[IM]*))?\s*)?!?\s*`)

// sedEscapes finds the first command in a sed script that runs a shell command or writes to a file. It returns the
// shell command or the file as operand.
func sedEscapes(script string) (operand string, runs, writes bool) {
	for n := 0; script != "" && n < 1000; n++ {
		script = strings.TrimLeft(script, " \t\n;{}")
		script = script[len(sedAddress().FindString(script)):]
		if script == "" {
			return "", false, false
		}
		command := script[0]
		script = script[1:]
		switch command {
		case 'e':
			line, _, _ := strings.Cut(script, "\n")
			return strings.TrimSpace(line), true, false
		case 'w', 'W':
			line, _, _ := strings.Cut(script, "\n")
			return strings.TrimSpace(line), false, true
		case 's', 'y':
			flags, rest := sedFlags(script)
			if command == 's' && strings.Contains(strings.SplitN(flags, "w", 2)[0], "e") {
				return "", true, false
			}
			if _, file, ok := strings.Cut(flags, "w"); ok && command == 's' {
				return strings.TrimSpace(file), false, true
			}
			script = rest
		case 'a', 'i', 'c', 'r', 'R', ':', 'b', 't', 'T', '#':
			// The rest of the line is a text, a file that sed reads, or a label.
			line, rest, _ := strings.Cut(script, "\n")
			for strings.HasSuffix(line, `\`) && rest != "" {
				line, rest, _ = strings.Cut(rest, "\n")
			}
			if i := strings.IndexAny(line, ";}"); i >= 0 && strings.IndexByte(":btT", command) >= 0 {
				rest = line[i+1:] + "\n" + rest
			}
			script = rest
		}
	}
	return "", false, false
}

// sedFlags skips the pattern and the replacement of a substitution. It returns the flags and the rest of the script.
func sedFlags(script string) (flags, rest string) {
	if script == "" {
		return "", ""
	}
	delimiter, seen := script[0], 0
	bracket := false
	for i := 1; i < len(script); i++ {
		switch c := script[i]; {
		case c == '\\':
			i++
		case bracket:
			bracket = c != ']'
		case c == '[' && seen == 0 && strings.IndexByte(script[i:], ']') > 0 && delimiter != '[':
			bracket = true
		case c == delimiter:
			if seen++; seen == 2 {
				flags = script[i+1:]
				end := strings.IndexAny(flags, ";}\n")
				if w := strings.IndexByte(flags, 'w'); w >= 0 && (end < 0 || w < end) {
					end = strings.IndexByte(flags, '\n')
				}
				if end < 0 {
					return flags, ""
				}
				return flags[:end], flags[end+1:]
			}
		}
	}
	return "", ""
}

// awk judges the programs of awk. Such a program may run a command with system or a pipe, or write to a file.
func (w *walker) awk(fs []field, st *state, in flow) {
	opts, operands := options(fs[1:], "vFfieEl --assign --field-separator --file --source --include --load --exec",
		true)
	programs := values(opts, "-e", "--source")
	fromFile := false
	for _, o := range opts {
		switch o.name {
		case "-f", "--file", "-E", "--exec":
			fromFile = true
			if o.value == nil {
				continue
			}
			if script, ok := handed(*o.value, in); ok {
				programs = append(programs, script)
			} else if w.runsForeign(*o.value, st) {
				w.askUnknown(whyRunsDownload, shown(fs))
			}
		case "-i", "--include":
			if o.value != nil && o.value.text == "inplace" && len(operands) > 1 {
				w.judgeWrites(operands[1:], st, deedEdits)
			}
		}
	}
	if len(programs) == 0 && !fromFile && len(operands) > 0 {
		programs = append(programs, operands[0])
	}
	for _, p := range programs {
		if what := awkEscape(p.text); what != nil {
			w.askBecause(whyProgram, what, shown(fs))
		}
		for _, text := range awkCommands().FindAllStringSubmatch(p.text, 16) {
			command := strings.ReplaceAll(text[1]+text[2]+text[3], `\"`, `"`)
			w.walkNested(command, p, st.child(nil), flow{})
		}
	}
}

var (
	awkCommands = lazily(`system\s*\(\s*"((?:[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)"\s*\|&?\s*getline|` +
		`\|&?\s*"((?:[^"\\]|\\.)*)"`)
	awkCalls   = lazily(`\bsystem\s*\(|\|&?\s*getline|@load|@include|\bprintf?\b[^;}\n]*\|&?\s*["\w$]`)
	awkStrings = lazily(`"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)+/`)
)

// awkEscape says whether an awk program runs a command or writes to a file. It returns nil if the program does neither.
func awkEscape(text string) *message.Text {
	// Strings and patterns are replaced first, because code inside them does not run.
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
		return doesRun
	}
	for _, statement := range strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(";{}\n", r) }) {
		if writesFile(statement) {
			return doesWrite
		}
	}
	return nil
}

// writesFile reports whether an awk statement prints to a file with > or >>. A > inside parentheses is a comparison.
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
