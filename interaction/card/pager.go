package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perlica/perlica/interaction"
)

// Hints are the words of a front end about its keys.
type Hints struct {
	Choose    string // what they do where the options are shown
	Turn      string // what they do on the pages before
	Small     string // that this screen is too small for a yes
	Elsewhere string // how to answer from somewhere else; it stands last on each page
}

// Pager puts a card on a screen, page by page, and knows what has been on it. The last page has
// the options. What need not be seen is left out if the rest fits on one page then. For a
// screen of another size make another Pager: what was seen on the one says nothing about the other.
type Pager struct {
	card   Card
	width  int
	height int // rows of a page; the cursor has one of its own
	hints  Hints

	pages [][]int // indexes of the card's rows; leftOut stands for what was left out
	hid   int     // how many rows that is
	keys  []Row   // of the last page, below the options: the hints for which there is room
	small bool    // not even one row fits beside the options
	at    int
	seen  []bool
}

// leftOut is the index of the row that says how much is left out.
const leftOut = -1

// NewPager lays a question out for a screen of that size.
func NewPager(q interaction.Question, width, height int, hints Hints) *Pager {
	p := &Pager{card: Lay(q, width), width: max(width, MinWidth), height: max(height-1, 1), hints: hints}
	p.seen = make([]bool, len(p.card.Rows))
	p.small = width < MinWidth || !p.footer()
	p.divide(false)
	return p
}

// Note is a text of Perlica's own as rows of a width.
func Note(text string, most int) (rows []Row) {
	for _, row := range wrap(Words(nil).visible(text, true), max(most, MinWidth)-2) {
		rows = append(rows, Row{Head: "  " + row, Tone: Aside})
	}
	return rows
}

// footer lays out the options, and as many hints as leave a row for what would run. It reports
// whether that can be done.
func (p *Pager) footer() bool {
	short := Row{Head: "  " + Line(p.hints.Choose, p.width-2), Tone: Aside}
	elsewhere := Note(p.hints.Elsewhere, p.width)
	for _, hints := range [][]Row{
		slices.Concat(Note(p.hints.Choose, p.width), elsewhere), append([]Row{short}, elsewhere...), elsewhere, {short}, nil,
	} {
		p.keys = hints
		if p.foot() < p.height && p.height > 1 {
			return true
		}
	}
	return false
}

// foot is how many rows the last page has below those of the question.
func (p *Pager) foot() int { return len(p.card.Options) + len(p.keys) }

// divide divides the rows into pages.
func (p *Pager) divide(all bool) {
	var head, must, every []int
	for i, r := range p.card.Rows {
		every = append(every, i)
		if r.Must || i == 0 && !all {
			must = append(must, i)
		} else {
			head = append(head, i)
		}
	}
	p.pages, p.hid, p.at = nil, 0, 0
	room := p.height - p.foot()
	rows := every
	if !all && len(every) > room && len(head) > 1 {
		// The title, what need not be seen as far as there is room, and the rest.
		some := min(max(room-len(must)-1, 0), len(head)-2)
		p.hid = len(head) - some
		rows = slices.Concat([]int{0}, head[:some], []int{leftOut}, must[1:])
	}
	for len(rows) > room && !p.small {
		n := min(p.height-1, len(rows)-room) // a hint is the last row
		p.pages, rows = append(p.pages, rows[:n]), rows[n:]
	}
	p.pages = append(p.pages, rows)
}

// Small reports whether the screen is too small for a yes to be taken on it.
func (p *Pager) Small() bool { return p.small }

// Draw returns the rows of the page without those of Keys. The page counts as seen from now on.
func (p *Pager) Draw() (rows []Row) {
	if p.Small() {
		return p.tooSmall()
	}
	for _, i := range p.pages[p.at] {
		if i == leftOut {
			rows = append(rows, p.marker())
			continue
		}
		p.seen[i] = true
		rows = append(rows, p.card.Rows[i])
	}
	if p.at < len(p.pages)-1 {
		return rows
	}
	return append(rows, p.card.Options...)
}

// Keys returns the last rows of the page, which say what the keys do. A front end draws them when a key that
// allows begins to count.
func (p *Pager) Keys() []Row {
	switch {
	case p.Small():
		return nil
	case p.at < len(p.pages)-1:
		turn := fmt.Sprintf("page %d of %d: %s", p.at+1, len(p.pages), p.hints.Turn)
		return []Row{{Head: "  " + Line(turn, p.width-2), Tone: Aside}}
	}
	return p.keys
}

// marker says how much is left out.
func (p *Pager) marker() Row {
	text := fmt.Sprintf("%d rows are left out: v shows all", p.hid)
	if p.hid == 1 {
		text = "1 row is left out: v shows all"
	}
	return Row{Head: "  " + Line(text, p.width-2), Tone: Aside}
}

// tooSmall is what is shown where a question does not fit: as much of its end as there is room.
func (p *Pager) tooSmall() []Row {
	rows := slices.Concat(p.card.Rows[:1], Note(p.hints.Small, p.width), Note(p.hints.Elsewhere, p.width))
	return rows[max(0, len(rows)-p.height):]
}

// Turn goes to the next page and reports whether there is one.
func (p *Pager) Turn() bool {
	if p.at >= len(p.pages)-1 {
		return false
	}
	p.at++
	return true
}

// All begins again at the first page, and leaves nothing out.
func (p *Pager) All() { p.divide(true) }

// Ready reports whether a yes may be taken: the options are shown, and all that would run has
// been on the screen.
func (p *Pager) Ready() bool {
	if p.Small() || p.at < len(p.pages)-1 {
		return false
	}
	for i, r := range p.card.Rows {
		if r.Must && !p.seen[i] {
			return false
		}
	}
	return true
}

// Shown says how many rows of the question have been on the screen.
func (p *Pager) Shown() *interaction.Shown {
	s := &interaction.Shown{Of: len(p.card.Rows)}
	for _, seen := range p.seen {
		if seen {
			s.Rows++
		}
	}
	return s
}

// Block is what a card says of its question but the title, as a block of Markdown.
func (c Card) Block() string {
	// Each row begins with two blanks, so that none can end the block.
	return "```\n" + Card{Rows: c.Rows[1:]}.Text() + "```"
}

// Text is a card as text, a line for each row.
func (c Card) Text() string {
	var b strings.Builder
	for _, r := range c.Rows {
		b.WriteString(r.String() + "\n")
	}
	for _, r := range c.Options {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}
