package card

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/interaction"
)

// words are parts of attacks and everyday texts.
var words = []string{
	"rm -rf src #", strings.Repeat(" ", 3600), strings.Repeat("\n",
		60), "go test ./...", "\n  1 ✓ once      “Yes”", "\n? claude asks: hello\n",
	"\r", "\r\n", "\t", strings.Repeat("\t", 90), "\v\f", "\u200b", "\u200d\ufeff\u2060", strings.Repeat("\u200b",
		500), "\u202e", "\u2066evil\u2069",
	"\u00a0", strings.Repeat("\u3000",
		99), "\u2800", "\u3164", "\uffa0", "\u115f\u1160", "\U000e0041\U000e007f", "\ufe0f", "\U000e0100", "\ue000",
	"\U0010ffff", "\u0378",
	"\x1b[2J\x1b[31m", "\x1b]0;t\a", "\x9b31m", "\u009b2J", "\xff\xfe", "\x00\x7f", "\u2028\u2029\u0085",
	strings.Repeat("x", 1500), "漢字とかな", strings.Repeat("漢", 300),
	"👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "✔️", "e\u0301", "a" + strings.Repeat("\u0336",
		80), "\u0301\u0302", "שלום", "א / 1 ב", "مرحبا", "│ ", "  runs    │ ls", "⟨12 blanks⟩", "↩⏎⇥…",
	"“Yes”   2 ✗ no  “",
	"”", "2 ✗ no", "  page 1 of 1: y", "from elsewhere: perlica pending show 12345678",
	"\n\n    indented\n\tcode {\n\t\t}\n", "Ж", "กำ", "", " ", "日本語 text", "…", "/", "root",
}

// question returns a question with random words.
func question(r *rand.Rand) interaction.Question {
	text := func() string {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	texts := func() (list []string) {
		for range r.IntN(3) {
			list = append(list, text())
		}
		return list
	}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	q := interaction.Question{ID: "0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", Title: text(), Why: pick("", text()),
		Word: pick("", "", "root")}
	q.Subject = interaction.Subject{
		Provider: pick("claude", text()), Kind: pick("execute", "edit", text()), Commands: texts(), Dir: pick("",
			"/work", text()),
		Paths: texts(), Tier: pick("", "ordinary", "always-asked",
			"refused"), Text: texts(), RawInput: []byte(pick("", "{}", text())),
	}
	for range r.IntN(3) {
		q.Subject.Fields = append(q.Subject.Fields, interaction.Field{Name: text(), Value: text(),
			Inert: r.IntN(2) == 0, Unread: r.IntN(2) == 0})
	}
	for range r.IntN(2) {
		q.Subject.Diffs = append(q.Subject.Diffs, interaction.Diff{Path: text(), Old: text(), New: text()})
	}
	for i := range r.IntN(6) {
		q.Options = append(q.Options, interaction.Option{
			ID: fmt.Sprint(i), Label: text(), Kind: pick("allow_once", "allow_always", "reject_once", "reject_always",
				text()), Offer: r.IntN(4) == 0,
		})
	}
	q.Options = interaction.Order(interaction.Refusable(q.Options))
	return q
}

// hints are as long as the hints of the terminal.
var hints = Hints{
	Choose:    "1-4 choose, y yes once, n or Esc no, Ctrl-C cancels the turn",
	Turn:      "y goes on, v shows all, n or Esc no",
	Small:     "This screen is too small: no yes can be given here, n or Esc is no.",
	Elsewhere: "from elsewhere: perlica pending show eeeeeeee",
}

// TestCards checks the promises of the package with random questions on random screens.
func TestCards(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := question(r)
		width, height := 1+r.IntN(130), 1+r.IntN(60)
		if msg := check(q, width, height, r); msg != "" {
			t.Fatalf("seed %d, %d×%d: %s\n%s", seed, width, height, msg, Lay(q, width).Text())
		}
	}
}

// FuzzCard checks the promises of TestCards with words of the fuzzer.
func FuzzCard(f *testing.F) {
	for i, w := range words {
		f.Add(w, "go test ./...", "Yes", uint8(10+i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, a, b, label string, width, height uint8) {
		q := interaction.Question{Title: b, Why: a, Subject: interaction.Subject{
			Provider: a, Tier: "ordinary", Kind: "edit", Commands: []string{a,
				b}, Dir: b, Text: []string{a + b}, Paths: []string{b + a},
			Fields: []interaction.Field{{Name: b, Value: a},
				{Name: a, Value: b, Unread: true}}, Diffs: []interaction.Diff{{Path: a, Old: b, New: a}},
		}, Options: interaction.Order(interaction.Refusable([]interaction.Option{{ID: "1", Label: label,
			Kind: "allow_once"}, {ID: "2", Label: a, Kind: b}}))}
		if msg := check(q, int(width), int(height), rand.New(rand.NewPCG(uint64(width), uint64(height)))); msg != "" {
			t.Fatal(msg)
		}
	})
}

// check lays out a question for a screen. It returns a description of the first broken promise, or "".
func check(q interaction.Question, width, height int, r *rand.Rand) string {
	c := Lay(q, width)
	if msg := checkRows(c, max(width, MinWidth)); msg != "" {
		return msg
	}
	// The test presses y, and sometimes v, until a yes counts.
	p := NewPager(q, width, height, hints)
	visible := map[string]int{}
	again := r.IntN(3) // how many times v is pressed at most
	for i := range 10*len(c.Rows) + 10 {
		if p.Small() && i > 2 {
			break
		}
		page := append(p.Draw(), p.Keys()...)
		for _, row := range page {
			if n := runewidth.StringWidth(row.String()); n > max(width, MinWidth) {
				return fmt.Sprintf("%q is %d columns wide", row, n)
			}
			visible[row.String()]++
		}
		if len(page) > max(height-1, 1) {
			return fmt.Sprintf("a page of %d rows", len(page))
		}
		if p.Ready() {
			for _, o := range c.Options {
				if !strings.Contains(pageText(page), o.String()+"\n") {
					return fmt.Sprintf("a yes is taken without the option %q", o)
				}
			}
			return unseen(c, visible)
		}
		if again > 0 && r.IntN(5) == 0 {
			again--
			p.All()
		} else {
			p.Turn()
		}
	}
	if !p.Small() && len(c.Options)+1 < height {
		return "no yes can be given"
	}
	return ""
}

func pageText(rows []Row) string { return Card{Rows: rows}.Text() }

// unseen returns a mandatory row that was never visible, or "". It does not ask the pager.
func unseen(c Card, visible map[string]int) string {
	need := map[string]int{}
	for _, row := range c.Rows {
		if row.Must {
			need[row.String()]++
		}
	}
	for row, n := range need {
		if visible[row] < n {
			return fmt.Sprintf("a yes is taken and %q was not seen", row)
		}
	}
	return ""
}

// unseeable reports whether a terminal shows nothing for the character r, or obeys r as a command. It does not use
// the code of the card.
func unseeable(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r) || unicode.In(r, unicode.C, unicode.Z, unicode.Me) && r != ' ' ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control,
			unicode.Join_Control) ||
		r == 0x2800 || r >= 0x334 && r <= 0x338
}

func checkRows(c Card, width int) string {
	for _, row := range append(c.Rows, c.Options...) {
		s := row.String()
		if n := runewidth.StringWidth(s); n > width {
			return fmt.Sprintf("%q is %d columns wide", s, n)
		}
		if !utf8.ValidString(s) {
			return fmt.Sprintf("%q is no UTF-8", s)
		}
		for _, r := range s {
			if unseeable(r) {
				return fmt.Sprintf("%q shows %U", s, r)
			}
		}
		if strings.Contains(strings.TrimLeft(row.Text, " +-⇥"), "     ") ||
			len(row.Text)-len(strings.TrimLeft(row.Text, " ")) > 25 {
			return fmt.Sprintf("%q has a run of blanks", s)
		}
		// The bar always stands in the same column, and exactly the rows of the agent's words have it.
		after, found := strings.CutPrefix(s, row.Head[:min(len(row.Head), 10)])
		behind := []rune(after)
		hasBar := found && len(behind) > 0 && (behind[0] == '│' || behind[0] == '┆')
		if row.Agent != (hasBar && strings.HasPrefix(s, "  ")) {
			return fmt.Sprintf("%q: of the agent: %v, with a bar: %v", s, row.Agent, hasBar)
		}
		if row.Agent && strings.TrimSpace(row.Head[:10]) != "" &&
			!strings.Contains(" says diff inert runs path unread with input in why ", " "+
				strings.TrimSpace(row.Head[:10])+" ") {
			return fmt.Sprintf("%q has a label of the agent's", s)
		}
	}
	for i, row := range c.Options {
		if !strings.HasPrefix(strings.TrimSpace(row.String()), fmt.Sprint(i+1, " ")) {
			return fmt.Sprintf("option %d is %q", i+1, row)
		}
	}
	return ""
}

// TestText checks how the card shows single texts.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"go test ./...": "go test ./...", "a    b": "a    b", "a     b": "a⟨5 blanks⟩b", "\tif x {": "⇥   if x {",
		"    x": "    x", "a\tb": "a⇥b",
		"a\t\tb": "a⟨2 tabs⟩b", strings.Repeat(" ", 25) +
			"x": "⟨25 blanks⟩x", "x  ": "x⟨2 blanks⟩", "a\r": "a⟨CR⟩", "\x1b[31m": "⟨ESC⟩[31m",
		"a\u200b\u200bb": "a⟨2 × U+200B⟩b", "a\xffb": "a⟨0xFF⟩b", "⟨3 blanks⟩": "⟨U+27E8⟩3 blanks⟨U+27E9⟩",
		"e\u0301":             "e\u0301",
		"e\u0301\u0301\u0301": "e\u0301\u0301⟨U+0301⟩", "-\u0301": "-⟨U+0301⟩", "a\u0336": "a⟨U+0336⟩",
		"漢字 Ж é": "漢字 Ж é", "א / ב": "א⟨rtl⟩ / ב⟨rtl⟩",
		"\u00a0": "⟨U+00A0⟩", "\ue000": "⟨U+E000⟩", "\U000e0041": "⟨U+E0041⟩", "\u3164": "⟨U+3164⟩",
		"\u2800": "⟨U+2800⟩", "👍": "👍",
	} {
		if got := textOf(Words(nil).visible(in, false)); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		" Run it\n": "Run it", "a\nb": "a⏎b", "a\n\nb": "a⟨2 line…", "a  b": "a⟨2 blan…",
		"0123456789abc": "01234567…", "“": "⟨U+201C⟩",
	} {
		if got := Line(in, 10); got != want {
			t.Errorf("in a line %q is %q, want %q", in, got, want)
		}
	}
}

// TestOnePage checks that a common question fits on one page, and that only optional rows are left out.
func TestOnePage(t *testing.T) {
	q := interaction.Question{Title: "Change it", Subject: interaction.Subject{
		Provider: "claude", Kind: "edit", Tier: "ordinary", Dir: "/w", Paths: []string{"/w/a.go"}, Text: []string{
			"what it is for"},
		Diffs: []interaction.Diff{{Path: "/w/a.go", New: strings.Repeat("a line\n", 200)}},
	}, Options: []interaction.Option{{ID: "y", Label: "Yes", Kind: "allow_once"}, {ID: "n", Label: "No",
		Kind: "reject_once"}}}
	pages := func(change func(*interaction.Question)) int {
		q := q
		change(&q)
		p := NewPager(q, 100, 24, hints)
		n := 1
		for p.Draw(); p.Turn(); p.Draw() {
			n++
		}
		if !p.Ready() {
			t.Error("no yes on the last page")
		}
		return n
	}
	if n := pages(func(*interaction.Question) {}); n != 1 {
		t.Errorf("an ordinary edit takes %d pages", n)
	}
	for name, change := range map[string]func(*interaction.Question){
		"outside":      func(q *interaction.Question) { q.Subject.Paths = []string{"/etc/passwd"} },
		"a link":       func(q *interaction.Question) { q.Subject.Paths = []string{"/w/../etc/passwd"} },
		"always asked": func(q *interaction.Question) { q.Subject.Tier = "always-asked" },
		"no tier":      func(q *interaction.Question) { q.Subject.Tier = "" },
		"a command":    func(q *interaction.Question) { q.Subject.Kind = "execute" },
		"unread": func(q *interaction.Question) {
			q.Subject.Fields = []interaction.Field{{Name: "x",
				Unread: true}}
		},
	} {
		if n := pages(change); n < 10 {
			t.Errorf("%s: all of the diff must be seen, on %d pages", name, n)
		}
	}
	p := NewPager(q, 100, 24, hints)
	p.Draw()
	if s := p.Shown(); s.Rows >= s.Of || s.Rows < 10 {
		t.Errorf("%+v were shown", s)
	}
	p.All()
	if p.Ready() {
		t.Error("a yes on a page without the options")
	}
	for p.Draw(); p.Turn(); p.Draw() {
	}
	if s := p.Shown(); s.Rows != s.Of {
		t.Errorf("%+v were shown", s)
	}
}

// TestMarked checks that each row after the first begins with a bar, fits the screen, and shows all its characters.
// This must hold for any words of the agent in a text of Perlica's.
func TestMarked(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(words[r.IntN(len(words))])
		}
		most := 1 + r.IntN(130)
		for _, text := range []string{b.String(), Line(b.String(), 0)} {
			for i, row := range strings.Split(Marked("perlica: "+text, most), "\n") {
				if first := strings.HasPrefix(row, "perlica:"); first != (i == 0) ||
					!first && !strings.HasPrefix(row, "  ┆ ") {
					t.Fatalf("seed %d: row %d is %q", seed, i, row)
				}
				if n := runewidth.StringWidth(row); n > max(most, MinWidth) {
					t.Fatalf("seed %d: %q is %d columns wide, of %d", seed, row, n, most)
				}
				if strings.ContainsFunc(row, unseeable) {
					t.Fatalf("seed %d: %q has what cannot be seen", seed, row)
				}
			}
		}
	}
	if got, want := Marked("perlica: "+Line("א\u200b“", 0)+
		", it ran\n1 ✓ once", 0), "perlica: א⟨rtl⟩⟨U+200B⟩⟨U+201C⟩, it ran\n  ┆ 1 ✓ once"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPathOnce checks that a file that an agent names twice gets only one row.
func TestPathOnce(t *testing.T) {
	var rows []string
	for _, r := range Lay(interaction.Question{Subject: interaction.Subject{Paths: []string{"/a", "/b", "/a"},
		Dir: "/"}}, 40).Rows {
		if strings.HasPrefix(r.Head, "  path") {
			rows = append(rows, r.Text)
		}
	}
	if !slices.Equal(rows, []string{"/a", "/b"}) {
		t.Errorf("the paths are %q", rows)
	}
}
