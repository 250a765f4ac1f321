package shell

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// option is one option of a command line, such as "-f" or "--force", with its value.
type option struct {
	name  string
	value *field
}

// options separates the arguments of a command into options and operands, as getopt does. valued lists the options
// that take a value, such as "ab --long --other" for -a, -b, --long and --other. If "stop" is true, all words from
// the first operand on are operands, because they are another command. A word with an unknown beginning is an
// operand.
func options(args []field, valued string, stop bool) (opts []option, operands []field) {
	short, long := valuedOptions(valued)
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case text == "--":
			return opts, append(operands, args[i+1:]...)
		case len(text) < 2 || text[0] != '-' || args[i].vague && strings.HasPrefix(text, "$"):
			if stop {
				return opts, args[i:len(args):len(args)]
			}
			operands = append(operands, args[i])
		case text[1] == '-':
			name, value, has := strings.Cut(text, "=")
			o := option{name: name}
			if has {
				o.value = part(args[i], value)
			} else if long[name] && i+1 < len(args) {
				i++
				o.value = &args[i]
			}
			opts = append(opts, o)
		default:
			cluster, used := shortOptions(args, i, short)
			opts = append(opts, cluster...)
			i += used
		}
	}
	return opts, operands
}

func optionsOf(args []field, valued string) []option {
	opts, _ := options(args, valued, false)
	return opts
}

func valuedOptions(valued string) (short string, long map[string]bool) {
	long = map[string]bool{}
	for name := range strings.FieldsSeq(valued) {
		if strings.HasPrefix(name, "--") {
			long[name] = true
		} else {
			short += name
		}
	}
	return short, long
}

// shortOptions reads a word with several short options, such as -rf or -n5. The result "used" is 1 if the next word
// is the value of an option, and 0 otherwise.
func shortOptions(args []field, i int, short string) (opts []option, used int) {
	text, _, _ := strings.Cut(args[i].text, unknownText)
	for j := 1; j < len(text); j++ {
		o := option{name: "-" + text[j:j+1]}
		if strings.IndexByte(short, text[j]) < 0 {
			opts = append(opts, o)
			continue
		}
		if j+1 < len(args[i].text) {
			o.value = part(args[i], args[i].text[j+1:])
		} else if i+1 < len(args) {
			o.value, used = &args[i+1], 1
		}
		return append(opts, o), used
	}
	return opts, 0
}

// part returns a copy of the field f with another text, a part of the text of f. The copy has the other properties of
// f, such as its origin.
func part(f field, text string) *field {
	f.text = text
	f.pat = text
	f.glob = f.glob && HasMeta(text)
	return &f
}

// hasOption reports whether one of the options was given. A long option may be shortened to its beginning, as getopt
// allows.
func hasOption(opts []option, names ...string) bool {
	_, ok := findOption(opts, names...)
	return ok
}

// findOption returns the last option with one of these names.
func findOption(opts []option, names ...string) (option, bool) {
	for i := len(opts) - 1; i >= 0; i-- {
		for _, name := range names {
			o := opts[i].name
			if o == name || (len(o) > 3 && strings.HasPrefix(o, "--") && strings.HasPrefix(name, o)) {
				return opts[i], true
			}
		}
	}
	return option{}, false
}

// among reports whether one of the fields has the text of one of the words.
func among(fs []field, words ...string) bool {
	return slices.ContainsFunc(fs, func(f field) bool { return slices.Contains(words, f.text) })
}

// values returns the values of the options with one of these names. Copies of values at its many uses would make the
// program larger.
//
//go:noinline
func values(opts []option, names ...string) []field {
	var out []field
	for _, o := range opts {
		if o.value != nil && slices.Contains(names, o.name) {
			out = append(out, *o.value)
		}
	}
	return out
}

// valuesOf returns the values of the options with these names, given as NAME=VALUE or as the next word. Unlike values,
// it does not need to know the other options of the program.
func valuesOf(fs []field, names []string) []field {
	var out []field
	for i, f := range fs {
		name, value, has := strings.Cut(f.text, "=")
		switch {
		case !slices.Contains(names, name):
		case has:
			out = append(out, *part(f, value))
		case i+1 < len(fs):
			out = append(out, fs[i+1])
		}
	}
	return out
}

// programs is the table of known programs, programs.txt. It has named parts. A row has names of programs and their
// properties.
//
//go:embed programs.txt
var programs string

// rows maps each part of the table and each name in it to the properties in the row.
var rows = sync.OnceValue(func() map[string]map[string]string {
	out, title := map[string]map[string]string{}, ""
	for line := range strings.Lines(programs) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "== "); ok {
			title, out[name] = name, map[string]string{}
		} else if line != "" && line[0] != '#' {
			names, said, _ := strings.Cut(line, " =")
			for name := range strings.FieldsSeq(names) {
				out[title][name] = strings.TrimSpace(said)
			}
		}
	}
	return out
})

// listed reports whether the part with this title has a row for the name.
func listed(title, name string) bool {
	_, ok := rows()[title][name]
	return ok
}

// table returns a function that looks up a name in the part with this title. The function "read" parses the properties
// in the row.
func table[T any](title string, read func(said string) T) func(name string) (T, bool) {
	return func(name string) (row T, ok bool) {
		said, ok := rows()[title][name]
		if ok {
			row = read(said)
		}
		return row, ok
	}
}

// members splits the properties in a row. It maps the first word of each property to its other words. It panics if the
// row has a property that is not in names.
func members(said string, names ...string) map[string][]string {
	out := map[string][]string{}
	for member := range strings.SplitSeq(said, ";") {
		words := strings.Fields(member)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains(names, words[0]) {
			panic("policy/shell: programs.txt: " + said)
		}
		out[words[0]] = words[1:]
	}
	return out
}

// figure returns the number in the words of a property, or 0 if there are no words.
func figure(words []string) int {
	n, _ := strconv.Atoi(strings.Join(words, "")) // 0 without words
	return n
}
