package config

import (
	"fmt"
	"strings"
)

// reference returns the table of keys in Markdown, as in docs/configuration.md.
func reference() string {
	var b strings.Builder
	for i := range table {
		r := &table[i]
		fmt.Fprintf(&b, "### `%s`\n\n", r.name)
		if r.reserved {
			fmt.Fprintf(&b, "Reserved: accepted, does nothing. ")
		}
		b.WriteString(r.help + "\n\n")
		fmt.Fprintf(&b, "- Type: %s%s\n", r.kind, r.values())
		switch {
		case r.required:
			b.WriteString("- Required\n")
		case r.def != nil:
			fmt.Fprintf(&b, "- Default: `%s`\n", format(r.def))
		default:
			b.WriteString("- Default: absent\n")
		}
		if r.def == nil || r.def == "" {
			fmt.Fprintf(&b, "- Example: `%s`\n", r.example)
		}
		if r.kind.scalar() && !isList(r.section()) {
			fmt.Fprintf(&b, "- Environment: `%s`\n", envName(r.name))
		}
		fmt.Fprintf(&b, "- Loosens: %s\n\n", r.loosens)
	}
	return b.String()
}

// values describes the valid values of the type.
func (r *row) values() string {
	switch {
	case r.choices != nil:
		return ", one of `" + strings.Join(r.choices, "` `") + "`"
	case r.max > 0:
		return ", from " + plain(r.min) + " to " + plain(r.max)
	case r.kind == duration:
		return ", more than zero"
	}
	return ""
}
