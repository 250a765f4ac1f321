// Package card lays a question out as rows of a given width, the same for every front end. These rows are called the
// card of the question.
//
// A reader can never mistake a row of the agent's words for a row of Perlica's words. The card marks the rows that
// must have been on the screen before a yes counts. The package draws nothing and reads no key. See
// docs/decisions/0005-what-a-yes-covers.md.
//
// Each row of the agent's words starts with a bar. The first row of a line has one kind of bar. If the line takes
// several rows, the other rows have another kind. A row of Perlica's words has no bar in that column. Invisible
// characters are replaced by their names between ⟨ and ⟩. The agent's own words cannot contain these two brackets.
package card

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/perlica/perlica/interaction"
)

// MinWidth is the minimum width of a card, in columns.
const MinWidth = 20

// PhoneWidth is the width of a card in a message, in columns. A phone shows about this many columns in one row.
const PhoneWidth = 44

// Tone is the meaning of a row, for front ends that use colours.
type Tone int

// The tones of rows.
const (
	Plain Tone = iota
	Title
	Added
	Removed
	Aside   // a hint, or a part of the request that does not change the action
	Warning // a part of the request that is not ordinary
	Refused
)

// Row is one row of a card. It has no control sequences and is not wider than the card.
type Row struct {
	Head  string // Perlica's words: a label and the bar, or an option's number and kind
	Text  string // the words after Head
	Agent bool   // Text is the agent's words, and Head ends with the bar
	Must  bool   // the row must have been on the screen before a yes counts
	Tone  Tone
}

func (r Row) String() string { return strings.TrimRight(r.Head+r.Text, " ") }

// Card is the layout of a question.
type Card struct {
	// Rows describe the request, from the title to the tier. The commands and files are last, directly above the
	// options.
	Rows []Row
	// Options has a row for each option of the question.
	Options []Row
}

// Words translates the English words of a card: the labels (at most seven columns), the tiers, the kinds of tools and
// the words in brackets. A word without a translation stays English.
type Words map[string]string

// Lay lays a question out in English. width is the width of the screen in columns.
func Lay(q interaction.Question, width int) Card { return Words(nil).Lay(q, width) }

// Lay lays a question out with translated words. width is the width of the screen in columns.
func (w Words) Lay(q interaction.Question, width int) Card {
	l := &layout{q: q, words: w, width: max(width, MinWidth)}
	l.addTitle()
	l.addDescription()
	l.addActions()
	c := Card{Rows: l.rows}
	for i, o := range q.Options {
		c.Options = append(c.Options, option(o, i+1, len(q.Options), l.width))
	}
	return c
}

// Each row of the agent's words starts with one of these bars. restBar is for the further rows of a line.
const (
	bar     = "│ "
	restBar = "┆ "
)

// labelWidth is the number of columns for a label before the bar.
const labelWidth = 7

type layout struct {
	q     interaction.Question
	words Words
	width int
	rows  []Row
}

// word translates one of the card's own words.
func (w Words) word(english string) string { return cmp.Or(w[english], english) }

func (l *layout) word(english string) string { return l.words.word(english) }

// label returns the text for the column of labels. An empty label gives blanks.
func (l *layout) label(english string) string {
	label := l.word(english)
	return "  " + label + strings.Repeat(" ", max(labelWidth-width(label), 0)) + " "
}

// addTitle adds the row with the provider's name and the agent's title for the request.
func (l *layout) addTitle() {
	asks, title := " asks: ", l.q.Title
	if title == "" {
		asks, title = " asks to ", "use a tool"
	}
	head := "? " + Line(l.q.Subject.Provider, max(l.width/4, 6)) + asks
	text := Line(title, max(l.width-width(head), 1))
	l.rows = append(l.rows, Row{Head: head, Text: text, Tone: Title})
}

// addDescription adds the agent's explanations, the diffs, and the fields that do not change the action.
func (l *layout) addDescription() {
	s := l.q.Subject
	alone := len(s.Commands)+len(s.Paths)+len(s.Fields)+len(s.Diffs) == 0 // the explanations are then the whole request
	for _, t := range s.Text {
		l.addText("says", t, alone, Plain)
	}
	for _, d := range s.Diffs {
		l.addDiff(d, !l.mayCut())
	}
	for _, f := range s.Fields {
		if f.Inert {
			l.addText("inert", f.Name+": "+f.Value, false, Aside)
		}
	}
}

// mayCut reports whether the person may say yes without seeing the diffs. This holds for an ordinary edit in the
// working tree, if Perlica understood all fields.
func (l *layout) mayCut() bool {
	s := l.q.Subject
	unread := func(f interaction.Field) bool { return f.Unread }
	outside := func(p string) bool {
		rel, err := filepath.Rel(s.Dir, p)
		return filepath.IsAbs(p) && (err != nil || !filepath.IsLocal(rel))
	}
	return s.Tier == ordinary && s.Kind == "edit" && !slices.ContainsFunc(s.Fields, unread) &&
		!slices.ContainsFunc(s.Paths, outside)
}

// addActions adds the commands, files and fields that would take effect, and the policy's verdict.
func (l *layout) addActions() {
	s := l.q.Subject
	for _, c := range s.Commands {
		l.addText("runs", c, true, Plain)
	}
	for _, p := range paths(s) {
		l.addText("path", p, true, Plain)
	}
	for _, f := range s.Fields {
		switch {
		case f.Unread:
			l.addText("unread", f.Name+": "+f.Value, true, Warning)
		case !f.Inert:
			l.addText("with", f.Name+": "+f.Value, true, Plain)
		}
	}
	raw := string(s.RawInput)
	if len(s.Fields)+len(s.Commands)+len(s.Paths) == 0 && raw != "" && raw != "{}" && raw != "null" {
		l.addText("input", raw, true, Plain) // Perlica understood no part of the input
	}
	if s.Dir != "" {
		l.addText("in", s.Dir, true, Plain)
	}
	l.addTier()
}

// paths returns the files of the request, including the files of its diffs. It returns each file once.
func paths(s interaction.Subject) []string {
	var list []string
	for _, p := range s.Paths {
		if !slices.Contains(list, p) { // an agent may name a file twice: in its input and as a location
			list = append(list, p)
		}
	}
	for _, d := range s.Diffs {
		full := d.Path
		if !filepath.IsAbs(full) {
			full = filepath.Join(s.Dir, full)
		}
		if !slices.Contains(list, full) && !slices.ContainsFunc(s.Paths,
			func(p string) bool { return p == d.Path || s.Dir == "" && strings.HasSuffix(p, "/"+d.Path) }) {
			list = append(list, d.Path)
		}
	}
	return list
}

const ordinary = "ordinary"

// addTier adds the policy's tier for the request, such as "always-asked". It also adds the reason for asking a
// person and the word that the person must type, if any.
func (l *layout) addTier() {
	s := l.q.Subject
	tone, words := Plain, l.word(strings.ReplaceAll(Line(s.Tier, 16), "-", " "))
	switch s.Tier {
	case ordinary, "":
	case "refused":
		tone = Refused
	default:
		tone = Warning
	}
	var parts []string
	if words != "" {
		parts = append(parts, words)
	}
	if s.Kind != "" {
		parts = append(parts, l.word("kind")+" "+l.word(Line(s.Kind, 16)))
	}
	if len(parts) > 0 {
		head := l.label("tier") + "  "
		l.rows = append(l.rows, Row{Head: head, Text: Line(strings.Join(parts, ", "), l.width-width(head)), Must: true,
			Tone: tone})
	}
	if l.q.Why != "" {
		l.addText("why", l.q.Why, true, Warning)
	}
	if l.q.Word != "" {
		head, text := l.label("allow")+"  ", fmt.Sprintf(l.word("type %s"), Line(l.q.Word, 16))
		if width(head)+width(text) > l.width { // the typed word is more important than the sentence
			text = Line(l.q.Word, 16)
		}
		l.rows = append(l.rows, Row{Head: head, Text: text, Must: true, Tone: tone})
	}
}

// addText adds the rows of one of the agent's texts, after its label.
func (l *layout) addText(label, text string, must bool, tone Tone) {
	blank := 0
	add := func(line string) {
		l.addLine(label, l.words.visible(line, false), must, tone)
		label = ""
	}
	flush := func() {
		switch {
		case blank == 1:
			add("")
		case blank > 1:
			l.addLine(label, l.words.blankLines(blank), must, tone)
			label = ""
		}
		blank = 0
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.Trim(line, " \t") == "" {
			blank++
			continue
		}
		flush()
		add(line)
	}
	flush()
}

// blankLines returns the cells of a text that says how many blank lines there are.
func (w Words) blankLines(n int) []cell {
	var rd reader
	rd.putOwn(string(open) + fmt.Sprintf(w.word("%d blank lines"), n) + string(shut))
	return rd.cells
}

// addLine adds the rows of one line of the agent's words.
func (l *layout) addLine(label string, cells []cell, must bool, tone Tone) {
	mark := bar
	room := l.width - width(l.label("")+bar)
	for _, row := range wrap(cells, room) {
		l.rows = append(l.rows, Row{Head: l.label(label) + mark, Text: row, Agent: true, Must: must, Tone: tone})
		label, mark = "", restBar
	}
}

// Text lays out one of the agent's texts with a label of at most seven letters. width is the width of the screen.
func Text(label, text string, width int) []Row {
	l := &layout{width: max(width, MinWidth)}
	l.addText(label, text, false, Plain)
	return l.rows
}

// Diff lays out a change to a file as a card does. width is the width of the screen.
func Diff(d interaction.Diff, width int) []Row {
	l := &layout{width: max(width, MinWidth)}
	l.addDiff(d, false)
	return l.rows
}

// Kind describes the effect of an option by a sign and a word. It ignores the option's label.
func Kind(o interaction.Option) (sign, word string) {
	switch {
	case o.Kind == "allow_once" && o.Offer:
		return "✓", "remember"
	case o.Kind == "allow_once":
		return "✓", "once"
	case o.Kind == "answer":
		return "✓", "answer"
	case o.Kind == "allow_always":
		return "!", "always"
	case o.Kind == "reject_once":
		return "✗", "no"
	case o.Kind == "reject_always":
		return "✗", "never"
	}
	return "!", "unknown" // an unknown kind counts as a yes for good
}

// Label returns an option as one line: its kind and its label. Only the agent's labels are in the quotes “ and ”,
// because the agent's words cannot contain these quotes. The parameter "most" is the maximum width in columns; 0 means
// no limit. A longer line is cut.
func Label(o interaction.Option, most int) string {
	sign, word := Kind(o)
	head := sign + " " + word + " "
	if most > 0 {
		most = max(most-width(head), width("“…”"))
	}
	return head + label(o, most)
}

// Given returns the chosen option of an answer as one line, as Label does. If the person typed a text, the line has
// that text in place of the label.
func Given(o interaction.Option, a interaction.Answer, most int) string {
	if o.Text {
		o.Label, o.Offer = a.Text, false
	}
	return Label(o, most)
}

func label(o interaction.Option, most int) string {
	if !o.Offer {
		if most > 0 {
			most = max(most-width("“”"), 1)
		}
		return "“" + Line(o.Label, most) + "”"
	}
	// This label leaves out the request that Perlica would remember, because the card above shows it.
	text := o.Label
	switch strings.TrimPrefix(o.ID, "perlica:remember-") {
	case "session":
		text = "exactly this, for this session"
	case "context":
		text = "exactly this, in this project"
	}
	return Line(text, most)
}

// option returns the row of an option. n is the option's number, and "of" is the number of all options.
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

// addDiff adds a change to a file as a unified diff.
func (l *layout) addDiff(d interaction.Diff, must bool) {
	l.addLine("diff", l.words.visible(d.Path, true), must, Plain)
	text := string(diff.Diff("old", []byte(d.Old), "new", []byte(d.New)))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[min(3, len(lines)):] // skip the diff's command and its two file names
	for i := 0; i < len(lines); {
		n := 1
		for blank(lines[i]) && i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		l.addDiffLine(lines[i], n, must)
		i += n
	}
}

// blank reports whether a line of a diff is empty after its sign.
func blank(line string) bool { return line == "" || strings.Trim(line[1:], " \t") == "" }

// addDiffLine adds a line of a diff. If n is more than 1, the line stands for n blank lines, and the row only says how
// many there are.
func (l *layout) addDiffLine(line string, n int, must bool) {
	sign := ""
	if line != "" {
		sign, line = line[:1], line[1:]
	}
	tone := map[string]Tone{"+": Added, "-": Removed}[sign]
	cells := l.words.visible(line, false)
	if n > 1 {
		cells = l.words.blankLines(n)
	}
	l.addLine("", append(l.words.visible(sign, false), cells...), must, tone)
}
