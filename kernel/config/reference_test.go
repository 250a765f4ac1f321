package config

import (
	"fmt"
	"strings"
)

// reference returns the documentation of all keys in Markdown, as it stands in docs/configuration.md.
func reference() string {
	var b strings.Builder
	for i := range table {
		r := &table[i]
		help := r.help
		if r.reserved {
			help = "Reserved: accepted, does nothing. " + help
		}
		facts := fmt.Sprintf("Type: %s%s.", r.kind, r.values())
		switch {
		case r.required:
			facts += " Required."
		case r.def != nil:
			facts += fmt.Sprintf(" Default: `%s`.", format(r.def))
		}
		if !r.kind.scalar() {
			facts += fmt.Sprintf(" Example: `%s`.", r.example)
		}
		if r.loosens != never {
			facts += fmt.Sprintf(" Loosens: %s.", r.loosens)
		}
		fmt.Fprintf(&b, "### `%s`\n\n%s\n%s\n", r.name, wrap(help, ""), wrap(facts, ""))
	}
	return b.String()
}

// values returns a text about the valid values of a key.
func (r *row) values() string {
	switch {
	case r.choices != nil:
		return ", one of `" + strings.Join(r.choices, "` `") + "`"
	case r.max > 0:
		return ", from " + plain(r.min) + " to " + plain(r.max)
	}
	return ""
}
