package card

import (
	"fmt"
	"strings"

	"github.com/perlica/perlica/interaction"
)

// Kind is what an option does, as a sign and a word: whatever its label says.
func Kind(o interaction.Option) (sign, word string) {
	switch {
	case o.Kind == "allow_once" && o.Offer:
		return "✓", "remember"
	case o.Kind == "allow_once":
		return "✓", "once"
	case o.Kind == "allow_always":
		return "!", "always"
	case o.Kind == "reject_once":
		return "✗", "no"
	case o.Kind == "reject_always":
		return "✗", "never"
	}
	return "!", "unknown" // it counts as a yes for good
}

// Label is an option as one line of at most so many columns: its kind and its label. Only the
// agent's labels stand in quotes, which they cannot hold themselves. With 0 nothing is cut off.
func Label(o interaction.Option, most int) string {
	sign, word := Kind(o)
	head := sign + " " + word + " "
	if most > 0 {
		most = max(most-width(head), width("“…”"))
	}
	return head + label(o, most)
}

func label(o interaction.Option, most int) string {
	if !o.Offer {
		if most > 0 {
			most = max(most-width("“”"), 1)
		}
		return "“" + Line(o.Label, most) + "”"
	}
	// What is remembered stands above: it is not repeated.
	text := o.Label
	switch strings.TrimPrefix(o.ID, "perlica:remember-") {
	case "session":
		text = "exactly this, for this session"
	case "context":
		text = "exactly this, in this project"
	}
	return Line(text, most)
}

// option is the row of an option, the n-th of so many.
func option(o interaction.Option, n, of, most int) Row {
	sign, word := Kind(o)
	tone := Plain
	switch {
	case o.Always():
		tone = Warning
	case !o.Allows():
		tone = Removed
	case !o.Offer:
		tone = Added
	}
	head := fmt.Sprintf("  %*d %s %-9s ", len(fmt.Sprint(of)), n, sign, word)
	return Row{Head: head, Text: label(o, max(most-width(head), 1)), Tone: tone}
}
