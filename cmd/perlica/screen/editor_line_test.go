package screen

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/perlica/perlica/cmd/perlica/screen/screentest"
)

// testEditor is an Editor on a terminal. It records the screen each time that Tab is pressed.
type testEditor struct {
	*Editor
	screen  *screentest.Terminal
	typed   *Keys
	columns int
	looks   []look
}

type look struct {
	rows        []string
	row, column int
}

// newTestEditor returns an Editor on a terminal of the given width. The function change sets more options. If it
// sets no function Complete, Tab records the screen.
func newTestEditor(t *testing.T, columns int, change func(*EditorOptions)) *testEditor {
	t.Helper()
	d := &testEditor{screen: screentest.New(columns, 12), typed: &Keys{}, columns: columns}
	o := EditorOptions{Out: d.screen, Size: func() (int, int) { return d.columns, 12 }}
	o.Complete = func(before string) (int, []string) {
		row, column := d.screen.Cursor()
		d.looks = append(d.looks, look{d.screen.Screen(), row, column})
		return len(before), nil
	}
	if change != nil {
		change(&o)
	}
	var err error
	if d.Editor, err = NewEditor(d.typed, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if len(d.screen.Strange) > 0 {
			t.Errorf("the terminal was sent %q", d.screen.Strange)
		}
	})
	return d
}

// line types keys at the prompt and returns the line. If the keys do not end the line, Ctrl-C ends it.
func (d *testEditor) line(t *testing.T, keys string) (string, error) {
	t.Helper()
	d.typed.Unread([]byte(keys + "\x03"))
	text, err := d.Line(t.Context(), func() string { return "> " }, "")
	d.typing = typingReader{}
	return text, err
}

// sends types keys and compares the sent line with the parameter "want".
func (d *testEditor) sends(t *testing.T, keys, want string) {
	t.Helper()
	if got, err := d.line(t, keys); got != want || err != nil {
		t.Errorf("%q sends %q, %v; want %q", keys, got, err, want)
	}
}

// These are the sequences of keys that are no letters.
const (
	up, down, right, left = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
	wordLeft, wordRight   = "\x1b[1;5D", "\x1b[1;3C"
	home, end, del        = "\x1b[H", "\x1b[4~", "\x1b[3~"
	backspace, enter      = "\x7f", "\r"
	ctrlA, ctrlC, ctrlD   = "\x01", "\x03", "\x04"
	ctrlE, ctrlK, ctrlL   = "\x05", "\x0b", "\x0c"
	ctrlR, ctrlS, ctrlU   = "\x12", "\x13", "\x15"
	ctrlW, ctrlZ, tab     = "\x17", "\x1a", "\t"
	backTab, escape       = "\x1b[Z", "\x1b"
	altEnter              = "\x1b\r"
)

func pasteOf(text string) string { return pasteBegin + text + pasteEnd }

// TestKeysOfALine checks the effect of each editing key on the line that is sent.
func TestKeysOfALine(t *testing.T) {
	for name, c := range map[string]struct{ keys, want string }{
		"typed":                 {"hello" + enter, "hello"},
		"left, right":           {"hlo" + left + left + "e" + right + "l" + enter, "hello"},
		"home and end":          {"b" + home + "a" + end + "c" + enter, "abc"},
		"Ctrl-A and Ctrl-E":     {"b" + ctrlA + "a" + ctrlE + "c" + enter, "abc"},
		"word to the left":      {"one two three" + wordLeft + wordLeft + "and " + enter, "one and two three"},
		"word to the right":     {"one two" + home + wordRight + wordRight + "!" + enter, "one two!"},
		"Alt-D":                 {"one two" + home + "\x1bd" + enter, " two"},
		"Backspace":             {"ab中" + backspace + backspace + enter, "a"},
		"Backspace inside":      {"a中b" + left + backspace + enter, "ab"},
		"Delete":                {"a中b" + home + right + del + enter, "ab"},
		"Delete at the end":     {"ab" + del + enter, "ab"},
		"Ctrl-D within a line":  {"abc" + home + ctrlD + enter, "bc"},
		"Ctrl-U":                {"gone" + left + ctrlU + enter, "e"},
		"Ctrl-K":                {"kept gone" + wordLeft + ctrlK + enter, "kept "},
		"Ctrl-W":                {"one two" + ctrlW + enter, "one "},
		"Alt-Enter":             {"a" + altEnter + "b" + enter, "a\nb"},
		"a backslash":           {`a\` + enter + ctrlE + "b" + enter, "a\nb"},
		"two backslashes":       {`a\\` + enter, `a\\`},
		"up within lines":       {"long one" + altEnter + "x" + up + "Y" + enter, "lYong one\nx"},
		"up from beyond a line": {"a" + altEnter + "long" + up + "Z" + enter, "aZ\nlong"},
		"down within lines": {"ab" + altEnter + "cd" + altEnter + "ef" + up + up + down + "X" + enter,
			"ab\ncdX\nef"},
		"down to a shorter line": {"long" + altEnter + "c" + up + end + down + "X" + enter, "long\ncX"},
		"paste of one line":      {"a " + pasteOf("b\x07中") + " c" + enter, "a b中 c"},
		"paste with a colour": {"a " + pasteOf("\x1b[1;31mred\x1b[0m \x1b]0;t\atitle \u009b4mc1 \x1b(Bset") + enter,
			"a red title c1 set"},
		"paste with a link":         {pasteOf("\x1b]8;;https://a.b\x1b\\text\x1b]8;;\x1b\\") + enter, "text"},
		"lines with colours":        {pasteOf("\x1b[31ma\r\x1b[0mb") + enter, "a\nb"},
		"paste of several lines":    {"see " + pasteOf("1\r\n2\r3") + "!" + enter, "see 1\n2\n3!"},
		"a paste taken back":        {"see " + pasteOf("1\r2") + backspace + "nothing" + enter, "see nothing"},
		"a paste taken back inside": {"a" + pasteOf("1\r2") + "b" + left + backspace + enter, "ab"},
		"lines that came at once":   {"a\rb" + ctrlE + "c" + enter, "a\nbc"},
		"keys without an effect":    {"a\x11\x16\x0f\x18\x00\x1b[99~" + "\x1b[Qb" + enter, "ab"},
		"Ctrl-Z, Shift-Tab, Ctrl-G": {"a" + ctrlZ + backTab + "\x07" + "b" + enter, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			newTestEditor(t, 60, nil).sends(t, c.keys, c.want)
		})
	}
}

// TestKeysThatEndALine checks that Ctrl-C abandons the line. The method Line must return the text of the abandoned
// line. Ctrl-D ends only an empty line.
func TestKeysThatEndALine(t *testing.T) {
	for name, c := range map[string]struct {
		keys, text string
		err        error
		shown      string
	}{
		"Ctrl-C":             {"half a line" + left + ctrlC, "half a line", ErrInterrupted, "> half a line^C\n"},
		"Ctrl-C, nothing":    {ctrlC, "", ErrInterrupted, "> ^C\n"},
		"Ctrl-D":             {ctrlD, "", io.EOF, ">\n"},
		"Ctrl-D, taken back": {"a" + backspace + ctrlD, "", io.EOF, ">\n"},
		"Enter":              {enter, "", nil, ">\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestEditor(t, 60, nil)
			text, err := d.line(t, c.keys)
			if text != c.text || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v", text, err)
			}
			if got := d.screen.All(); got != c.shown {
				t.Errorf("it shows %q, want %q", got, c.shown)
			}
		})
	}
}

// TestALineThatIsCutOff ends the context while a line is typed. Line must return the text so far, and the next Line
// must continue it.
func TestALineThatIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newTestEditor(t, 60, func(o *EditorOptions) {
		o.Cycle = cancel
	})
	d.typed.Unread([]byte("half" + backTab + " a line" + enter))
	text, err := d.Line(ctx, func() string { return "> " }, "")
	if text != "half" || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %q, %v", text, err)
	}
	if text, err = d.Line(t.Context(), func() string { return "> " }, text); text != "half a line" || err != nil {
		t.Errorf("then %q, %v", text, err)
	}
}

// TestHistoryKeys checks that Up and Down show the lines that were sent, without duplicates. Ctrl-R and Ctrl-S must
// search these lines.
func TestHistoryKeys(t *testing.T) {
	var kept []string
	d := newTestEditor(t, 60, func(o *EditorOptions) {
		o.Past = []string{"of yesterday"}
		o.Keep = func(entry string) { kept = append(kept, entry) }
	})
	for _, s := range []string{"first", "second 中", "first", "  "} {
		d.sends(t, s+enter, s)
	}
	d.sends(t, "see "+pasteOf("1\r2")+enter, "see 1\n2")
	if want := []string{"first", "second 中", "first", "see 1\n2"}; !slices.Equal(kept, want) {
		t.Errorf("kept are %q, want %q", kept, want)
	}
	for keys, want := range map[string]string{
		up:                          "see 1\n2",
		up + up:                     "first",
		up + up + up:                "second 中",
		up + up + up + up:           "of yesterday",
		up + up + up + up + up:      "of yesterday",
		up + up + down:              "see 1\n2",
		"new" + up + down:           "new",
		up + up + "!":               "first!",
		ctrlR + "sec":               "second 中",
		ctrlR + "t" + ctrlR + ctrlR: "of yesterday",
		ctrlR + "t" + ctrlR + ctrlR + ctrlS + ctrlS: "first",
		"kept" + ctrlR + "sec" + "\x07":             "kept",
		"kept" + ctrlR + "sec" + ctrlC + "?":        "kept?",
		ctrlR + "yester" + ctrlE + " and more":      "of yesterday and more",
	} {
		e := newTestEditor(t, 60, func(o *EditorOptions) { o.Past = slices.Clone(d.past) })
		e.folded = d.folded
		e.sends(t, keys+enter, want)
	}
	e := newTestEditor(t, 60, func(o *EditorOptions) { o.Past = slices.Clone(d.past) })
	if _, err := e.line(t, ctrlR+"sec"+tab); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("got %v; want errors.Is(err, ErrInterrupted)", err)
	}
	if len(e.looks) != 1 || !strings.HasPrefix(e.looks[0].rows[0], "search back: sec second 中") {
		t.Errorf("while it searches it shows %+v", e.looks)
	}
}

// TestWhatEndsALineForAWhile checks that the line stays during another editor, during a stop and after Shift-Tab. A
// failure must be shown.
func TestWhatEndsALineForAWhile(t *testing.T) {
	var did []string
	fails := error(nil)
	d := newTestEditor(t, 60, func(o *EditorOptions) {
		o.Suspend = func() { did = append(did, "stop") }
		o.Cycle = func() { did = append(did, "cycle") }
		o.Edit = func(text string) (string, error) {
			did = append(did, "edit "+text)
			return strings.ToUpper(text) + "\n", fails
		}
	})
	d.sends(t, "a"+ctrlZ+"b"+backTab+"c\x18\x05d"+enter, "ABCd")
	d.sends(t, pasteOf("x\ry")+"\x18\x05"+enter, "X\nY")
	fails = errors.New("no such\x1b[2J program")
	d.sends(t, "kept\x18\x05"+enter, "kept")
	if want := []string{"stop", "cycle", "edit abc", "edit x\ny", "edit kept"}; !slices.Equal(did, want) {
		t.Errorf("done was %q, want %q", did, want)
	}
	if got := d.screen.All(); !strings.Contains(got, "the editor: no such") {
		t.Errorf("it shows\n%s", got)
	}
}

// TestCompletion checks that Tab inserts the common beginning of all words. Otherwise Tab must list the
// words.
func TestCompletion(t *testing.T) {
	var words []string
	d := newTestEditor(t, 20, func(o *EditorOptions) {
		o.Complete = func(before string) (int, []string) { return strings.LastIndex(before, " ") + 1, words }
	})
	for _, c := range []struct {
		words      string
		keys, want string
	}{
		{"/model", "/mo" + tab + "x", "/model x"},
		{"/mode /model", "/m" + tab, "/mode"},
		{"src/", "in s" + tab + "a", "in src/a"},
		{"中文 中国", "中" + tab, "中"},
		{"two", "one t three" + wordLeft + left + tab, "one two  three"},
		{"", "/x" + tab, "/x"},
	} {
		words = strings.Fields(c.words)
		d.sends(t, c.keys+enter, c.want)
	}
	if got := d.screen.All(); !strings.Contains(got, "> 中\n中文  中国\n> 中\n") {
		t.Errorf("it shows\n%s", got)
	}
	words = nil
	for r := range maxListed + 5 {
		words = append(words, "/"+strings.Repeat(string(rune('a'+r%26)), 5))
	}
	d.sends(t, "/"+tab+enter, "/")
	if got := d.screen.All(); !strings.Contains(got, "/aaaaa  /bbbbb\n") || !strings.Contains(got, "\n…\n> /\n") ||
		strings.Count(got, "/") < maxListed {
		t.Errorf("it shows\n%s", got)
	}
}

// TestGate closes the gate because of one key, and then calls openGateAfter for another key that cannot end the
// line. The gate must stay closed, because the next byte belongs to the next reader.
func TestGate(t *testing.T) {
	p := &pump{gate: true, queue: []byte{markOp, markEdit, 'x'}}
	p.cond.L = &p.mu
	b := make([]byte, 8)
	if n, err := p.Read(b); n != 2 || err != nil {
		t.Fatalf("got %v, %v; want n == 2 && err == nil", n, err)
	}
	if p.openGateAfter(markOp); p.gate {
		t.Error("after the key that may end the line, a further byte passes")
	}
	p.openGateAfter(markEdit)
	if n, err := p.Read(b); n != 1 || b[0] != 'x' || err != nil {
		t.Errorf("got %v, %v, %v; want n == 1 && b[0] == 'x' && err == nil", n, b[0], err)
	}
}
