package config

import (
	"bytes"
	"fmt"
)

// What a configuration file may hold. A project's file comes with a clone, and the TOML parser
// takes time and memory out of proportion to nested names; the limits hold before it sees
// the file. With them the worst file that is allowed takes less than 50 ms and 20 MB.
const (
	maxFileSize    = 1 << 20  // the user's file, and a system prompt
	maxProjectSize = 64 << 10 // a project's config.toml
	maxValues      = 2000     // keys, tables and elements of lists
	maxDepth       = 16       // parts of one dotted name; brackets within each other
)

// exceeds returns what is too much in a TOML file, with its line, or nil. It counts names and
// brackets outside of strings and comments; whether they are TOML is the parser's to say.
func exceeds(source string, data []byte) *Problem {
	line, values, parts, brackets := 1, 0, 1, 0
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case '"', '\'':
			n := stringLength(data[i:])
			line += bytes.Count(data[i:i+n], []byte("\n"))
			i += n
			continue
		case '#':
			if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(data)
			}
			continue
		case '\n':
			line++
			parts = 1
		case '.':
			parts++
		case '=', ',':
			values++
			parts = 1
		case '[', '{':
			values++
			brackets++
			parts = 1
		case ']', '}':
			brackets--
		}
		switch {
		case parts > maxDepth || brackets > maxDepth:
			return &Problem{Source: source, Line: line, Reason: fmt.Sprintf("nests deeper than %d levels", maxDepth)}
		case values > maxValues:
			return &Problem{Source: source, Line: line, Reason: fmt.Sprintf("holds more than %d keys and values", maxValues)}
		}
		i++
	}
	return nil
}

// stringLength is how many bytes the TOML string takes with which data begins. One that is not
// closed ends where the parser stops with an error: with its line, or with the file.
func stringLength(data []byte) int {
	quote := data[:1]
	end := quote
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(data, long) {
		end = long
	}
	for i := len(end); i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case data[i] == '\n' && len(end) == 1:
			return i
		case bytes.HasPrefix(data[i:], end):
			return i + len(end)
		}
	}
	return len(data)
}
