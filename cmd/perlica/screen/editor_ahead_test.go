package screen

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// during types keys while there is no prompt. It returns the last text that on.Typed received.
func (d *testEditor) during(t *testing.T, keys string, on AheadEvents) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	last := ""
	on.Typed = func(text string) { last = text }
	on.Interrupt = cancel
	d.typed.Unread([]byte(keys + ctrlC))
	if err := d.Ahead(ctx, on); !errors.Is(err, context.Canceled) {
		t.Errorf("Ahead: %v", err)
	}
	return last
}

// TestTypedAhead types keys while there is no prompt. The next prompt must contain the text, and Enter must not send
// it.
func TestTypedAhead(t *testing.T) {
	for name, c := range map[string]struct{ keys, typed, sent string }{
		"letters":             {"a中b", "a中b", "a中b"},
		"Enter":               {"a" + enter, "a\n", "a"},
		"Alt-Enter":           {"a" + altEnter + "b", "a\nb", "a\nb"},
		"Backspace":           {"a中" + backspace, "a", "a"},
		"Backspace, nothing":  {backspace, "", ""},
		"Ctrl-U":              {"gone" + ctrlU + "new", "new", "new"},
		"Ctrl-W":              {"one two  " + ctrlW, "one ", "one "},
		"paste":               {"see " + pasteOf("1\r2"), "see [pasted 2 lines #1]", "see 1\n2"},
		"a paste taken back":  {"see " + pasteOf("1\r2") + backspace, "see ", "see "},
		"lines that came":     {"a\rb", "a\nb", "a\nb"},
		"keys without effect": {"a" + up + left + wordLeft + del + tab, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestEditor(t, 60, nil)
			if d.Quiet() != math.MaxInt64 {
				t.Error("something was typed before")
			}
			if got := d.during(t, c.keys, AheadEvents{}); got != c.typed {
				t.Errorf("the line is %q, want %q", got, c.typed)
			}
			if d.Quiet() == math.MaxInt64 {
				t.Error("nothing was typed")
			}
			d.sends(t, ctrlE+enter, c.sent)
			d.sends(t, "next"+enter, "next")
		})
	}
}

// TestEnterWhileThereIsNoPrompt presses Enter while there is no prompt. The caller and the history must get the
// whole line. The key Up returns the text of a line that waits.
func TestEnterWhileThereIsNoPrompt(t *testing.T) {
	var lines []string
	waits := ""
	on := AheadEvents{Enter: func(line string) { lines = append(lines, line) }, Back: func() string { return waits }}
	d := newTestEditor(t, 60, nil)
	for _, keys := range []string{"one" + enter, "  " + enter, `a\` + enter + ctrlE + "b" + enter, "see " +
		pasteOf("1\r2") + enter} {
		if left := d.during(t, keys, on); left != "" {
			t.Errorf("%q left %q", keys, left)
		}
	}
	if want := []string{"one", "a\nb", "see 1\n2"}; !slices.Equal(lines, want) {
		t.Errorf("handed over were %q, want %q", lines, want)
	}
	// The second entry of the history has two lines. The first Up in it only moves the cursor.
	d.sends(t, up+up+up+up+enter, "one")

	waits = "it waits\x07"
	if got := d.during(t, up+"!", on); got != "it waits!" {
		t.Errorf("Up took back %q", got)
	}
	if got := d.during(t, up, on); got != "it waits!" {
		t.Errorf("Up in a line made of it %q", got)
	}
	waits = strings.Repeat("long ", 200)
	if got := d.during(t, ctrlU+up, on); got != "[pasted 1 KB #2]" {
		t.Errorf("Up took back %q", got)
	}
	d.sends(t, enter, waits)
}

// TestKeysForTheTurn presses Esc and Ctrl-Z while there is no prompt. They call their functions and do not change
// the line.
func TestKeysForTheTurn(t *testing.T) {
	stops, escapes := 0, 0
	d := newTestEditor(t, 60, func(o *EditorOptions) { o.Suspend = func() { stops++ } })
	last := d.during(t, "a"+ctrlZ+"b", AheadEvents{Escape: func() { escapes++ }})
	for _, on := range []AheadEvents{{}, {Escape: func() { escapes++ }}} {
		d.aheadKey(Key{Kind: KeyEsc}, on)
	}
	if last != "ab" || stops != 1 || escapes != 1 {
		t.Errorf("the line is %q, %d stops, %d Esc", last, stops, escapes)
	}
}

// TestWhatAPasteStandsFor checks that the function Pasted can replace a paste.
func TestWhatAPasteStandsFor(t *testing.T) {
	d := newTestEditor(t, 60, func(o *EditorOptions) { o.Pasted = func(text string) string { return "@" + text } })
	d.sends(t, pasteOf("/tmp/a.png")+enter, "@/tmp/a.png")
}

// TestHistoryThatCannotBeUsed checks that Load skips damaged lines. Load and Add must report a file that cannot be
// used.
func TestHistoryThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	h := LineHistory{Path: filepath.Join(dir, "history")}
	if err := os.WriteFile(h.Path, []byte("\"one\"\nno JSON\n{}\n\"\"\n\"two\"\n\"cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if past, err := h.Load(); !slices.Equal(past, []string{"one", "two"}) || err != nil {
		t.Errorf(`got %q, %v; want slices.Equal(past, []string{"one", "two"}) && err == nil`, past, err)
	}
	for _, h := range []LineHistory{{Path: dir}, {Path: filepath.Join(h.Path, "below a file")}} {
		if past, err := h.Load(); err == nil {
			t.Errorf("%s: read %q", h.Path, past)
		}
		if err := h.Add("x"); err == nil {
			t.Errorf("%s: written", h.Path)
		}
	}
}
