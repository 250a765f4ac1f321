package channeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/perlica/perlica/service/channel"
)

// cases is the table. A case without a fallback is skipped if its capability is missing.
var cases = []struct {
	name     string
	needs    Capability
	run      func(*world)
	fallback func(*world)
}{
	{name: "text", run: text},
	{name: "text that is only a code", needs: Texts, run: func(*world) {}, fallback: noTexts},
	{name: "half a surrogate pair", needs: HalfPairs, run: brokenText},
	{name: "name of a person", needs: Names, run: named},
	{name: "long text", run: longText},
	{name: "text over the limit", run: overLimit},
	{name: "formatting", run: formatting},
	{name: "special characters", run: special},
	{name: "file of a person", needs: FilesIn, run: fileIn},
	{name: "file of a person that comes at the second attempt", needs: FilesIn, run: fileInLater},
	{name: "file of the bot", needs: FilesOut, run: fileOut, fallback: noFileOut},
	{name: "picture of the bot", needs: FilesOut, run: pictureOut},
	{name: "button", needs: Buttons, run: button, fallback: noButtons},
	{name: "reply", needs: Replies, run: reply, fallback: noReplies},
	{name: "edit", needs: Edits, run: edit, fallback: noEdits},
	{name: "order", needs: Orders, run: order, fallback: noOrder},
	{name: "order with a wrong clock", needs: Clocks, run: wrongClock},
	{name: "unrecorded message", run: unrecorded},
	{name: "cursor after a restart", run: restarted},
	{name: "redelivery", needs: Redeliveries, run: redelivery},
	{name: "redelivery after a restart", needs: Redeliveries, run: lateRedelivery},
	{name: "reversed order", needs: Reversals, run: reversed},
	{name: "own message", needs: Echoes, run: echo},
	{name: "faults of sending", run: sendingFaults},
	{name: "faults of editing", needs: Edits, run: editingFaults},
	{name: "faults of receiving", run: receivingFaults},
	{name: "revoked token", needs: Revocations, run: revoked},
	{name: "deleted chat", needs: Deletions, run: deleted},
	{name: "end of the context", run: ended},
	{name: "close while connecting", needs: Connects, run: closedConnecting},
	{name: "close while waiting", run: closedWaiting},
}

// Run runs the table over a subject.
func Run(t *testing.T, s Subject) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := c.run
			if why, lacks := s.Lacks[c.needs]; lacks && c.needs != "" {
				if c.fallback == nil {
					t.Skipf("%s has no %s: %s", s.Name, c.needs, why)
				}
				run = c.fallback
			}
			run(start(t, s))
		})
	}
}

func text(w *world) {
	id := w.write("hello")
	m := w.receives(id)
	if m.Chat != w.ada.Chat || m.Contact != w.ada.Contact || m.Text != w.words("hello") || m.Own || m.Quoted ||
		m.Shared || m.ReplyTo != "" || m.Button != "" || m.Unread != "" || len(m.Files) > 0 {
		w.t.Errorf("got %+v, want the text of %+v", m, w.ada)
	}
	if age := time.Since(m.Sent); age > time.Hour || age < -time.Hour {
		w.t.Errorf("the message was sent at %s", m.Sent)
	}
	if sent, got := w.sends(channel.Outbound{Text: "a reply"}); got.Shown != "a reply" || got.Chat != w.ada.Chat ||
		got.ID != sent {
		w.t.Errorf("Send returned %q, and the platform has %+v", sent, got)
	}
	if len(w.p.Sent()) != 1 {
		w.t.Errorf("one message became %+v", w.p.Sent())
	}
}

// noTexts checks that a text has no effect, and that the next code arrives.
func noTexts(w *world) {
	for _, text := range []string{"hello", "12345", "1234567", "1", "#12345678 1"} {
		w.p.Write(w.ada, Message{Text: text})
	}
	if _, all := w.until(w.write("a code"), false); len(all) != 1 {
		w.t.Errorf("got %+v", all)
	}
}

// brokenText checks that a broken character loses neither its message nor the next one.
func brokenText(w *world) {
	broken := w.write("a" + halfPair + "b")
	w.receives(w.write("last"))
	if got := w.seen[broken].Text; got != "a\uFFFDb" {
		w.t.Errorf("got %q", got)
	}
}

func named(w *world) {
	if m := w.receives(w.write("hello")); m.Name != w.ada.Name {
		w.t.Errorf("the name is %q, want %q", m.Name, w.ada.Name)
	}
}

// letters returns the letters and digits of a text, without the numbers of parts.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

func longText(w *world) {
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "Line %d of a long **answer** with `code` and 语言.\n", i)
		if i%40 == 0 {
			b.WriteString("\n```go\nif a < b && c > d {\n}\n```\n\n")
		}
	}
	parts := channel.Cut(b.String(), w.Limits())
	var got strings.Builder
	for i, part := range parts {
		_, m := w.sends(channel.Outbound{Text: part, Key: fmt.Sprint("part", i)})
		shown := m.Shown
		if len(parts) > 1 {
			_, shown, _ = strings.Cut(shown, "\n")
		}
		got.WriteString(shown)
	}
	if want := letters(strings.ReplaceAll(b.String(), "```go", "")); letters(strings.ReplaceAll(got.String(), "```go",
		"")) != want {
		w.t.Errorf("%d parts have other letters than the text", len(parts))
	}
}

func overLimit(w *world) {
	most := w.Limits().Text
	if most == 0 {
		w.t.Skip("the platform has no limit")
	}
	_, err := w.Send(w.patient(), channel.Outbound{Chat: w.ada.Chat, Text: strings.Repeat("x", most+1), Key: "k"})
	if kindOf(err) != rejected || len(w.p.Sent()) > 0 {
		w.t.Errorf("a text over the limit: %v, and %d messages", err, len(w.p.Sent()))
	}
	if _, m := w.sends(channel.Outbound{Text: strings.Repeat("x", most)}); m.Shown != strings.Repeat("x", most) {
		w.t.Errorf("a text of %d units is shown with %d bytes", most, len(m.Shown))
	}
}

func formatting(w *world) {
	const markdown = "# Title\n\n**bold** and *thin* and `a<b` and [link](https://x.example/?a&b)\n\n" +
		"```go\nif a < b {\n}\n```"
	parts := channel.Cut(markdown, w.Limits())
	if len(parts) != 1 {
		w.t.Fatalf("%d parts", len(parts))
	}
	_, m := w.sends(channel.Outbound{Text: parts[0]})
	for _, want := range []string{"Title", "bold and thin and", "a<b", "if a < b {\n}"} {
		if !strings.Contains(m.Shown, want) {
			w.t.Errorf("a person reads %q without %q", m.Shown, want)
		}
	}
	if strings.Contains(m.Shown, "**") || strings.Contains(m.Shown, "&lt;") || m.Mentions > 0 {
		w.t.Errorf("a person reads %q", m.Shown)
	}
}

// special checks that the words of an agent notify nobody and format nothing.
func special(w *world) {
	const words = "a < b & c > d, &amp; <@U123> <!channel> @everyone @here <at id=all></at> <x> a_b_c 2 * 3 ~5"
	parts := channel.Cut(words, w.Limits())
	_, m := w.sends(channel.Outbound{Text: parts[0]})
	if m.Shown != words || m.Mentions > 0 {
		w.t.Errorf("a person reads %q with %d mentions, want %q", m.Shown, m.Mentions, words)
	}
	_, m = w.sends(channel.Outbound{Text: words, Plain: true})
	if m.Shown != words || m.Mentions > 0 {
		w.t.Errorf("without formatting a person reads %q with %d mentions, want %q", m.Shown, m.Mentions, words)
	}
}

// content returns the content of a received file.
func (w *world) content(m channel.Inbound) (data []byte, err error) {
	w.t.Helper()
	if len(m.Files) != 1 {
		w.t.Fatalf("%d files in %+v", len(m.Files), m)
	}
	f := m.Files[0]
	if f.Path == "" {
		fetcher, ok := w.Channel.(channel.Fetcher)
		if !ok {
			w.t.Fatalf("the file %+v has no path, and the channel fetches no files", f)
		}
		f.Path, err = fetcher.Fetch(w.patient(), m.ID, 0, f)
		w.clean(err)
		if err != nil {
			return nil, err
		}
		if again, err := fetcher.Fetch(w.patient(), m.ID, 0, f); err != nil || again != f.Path {
			w.t.Errorf("the second fetch: %q, %v; want %q", again, err, f.Path)
		}
	}
	if data, err = os.ReadFile(f.Path); err != nil {
		w.t.Fatal(err)
	}
	return data, nil
}

// caption returns the words for the message of a file. They are empty if such a message has no text.
func (w *world) caption(words string) string {
	if _, lacks := w.s.Lacks[Captions]; lacks {
		return ""
	}
	return words
}

func fileIn(w *world) {
	data := bytes.Repeat([]byte("0123456789\x00\n"), 20_000)
	words := w.caption("look")
	m := w.receives(w.p.Write(w.ada, Message{Text: words, File: &File{Name: "../../notes.txt", Data: data}}))
	if m.Text != words || len(m.Files) != 1 || m.Files[0].Name != "notes.txt" {
		w.t.Errorf("got %+v", m)
	}
	if got, err := w.content(m); err != nil || !bytes.Equal(got, data) {
		w.t.Errorf("got %d bytes, want %d; %v", len(got), len(data), err)
	}
	m = w.receives(w.p.Write(w.ada, Message{File: &File{Name: "b.txt", Data: []byte("without words")}}))
	if got, err := w.content(m); err != nil || m.Text != "" || string(got) != "without words" {
		w.t.Errorf("got %q, %v, %+v", got, err, m)
	}
}

// fileInLater checks that a failed download is no refusal, because a later attempt can work.
func fileInLater(w *world) {
	m := w.receives(w.p.Write(w.ada, Message{Text: w.caption("look"), File: &File{Name: "a.txt", Data: []byte("text")}}))
	if m.Files[0].Path != "" {
		w.t.Skip("the file comes with its message")
	}
	for _, f := range []Fault{Drop, ServerError, RateLimit, Half} {
		if !w.s.Has(f) {
			continue
		}
		w.p.Fail(Fetching, f)
		if _, err := w.content(m); kindOf(err) != unknown && kindOf(err) != notSent {
			w.t.Errorf("%s: %s: %v", f, kindOf(err), err)
		}
	}
	if got, err := w.content(m); err != nil || string(got) != "text" {
		w.t.Errorf("afterwards %q, %v", got, err)
	}
}

func fileOut(w *world) {
	data := bytes.Repeat([]byte("0123456789\x00\n"), 20_000)
	file := &channel.File{Name: "../log.txt", Path: w.temp(data)}
	if _, m := w.sends(channel.Outbound{Text: "see", File: file}); m.File == nil || m.File.Name != "log.txt" ||
		!bytes.Equal(m.File.Data, data) {
		w.t.Errorf("the platform has %+v", m.Text)
	}
	file = &channel.File{Name: "gone.txt", Path: w.t.TempDir() + "/gone"}
	if _, err := w.Send(w.patient(), channel.Outbound{Chat: w.ada.Chat, File: file, Key: "gone"}); err == nil {
		w.t.Error("a missing file was sent")
	}
}

// pictureOut checks that people see a picture itself. A picture that the platform cannot show comes as a file. On some
// platforms all pictures come as files.
func pictureOut(w *world) {
	for _, c := range []struct {
		name, mime string
		data       []byte
		picture    bool
	}{
		{"picture.png", "image/png", Picture(3, 2), true},
		{"other.bin", "application/octet-stream", []byte("<script>alert(1)</script>"), false},
	} {
		file := &channel.File{Name: c.name, MIME: c.mime, Path: w.temp(c.data)}
		_, m := w.sends(channel.Outbound{Text: "see", File: file})
		shown := c.picture && w.s.Shows()
		if m.File == nil || m.File.Name != c.name && !shown || !bytes.Equal(m.File.Data, c.data) ||
			m.File.Picture != shown {
			w.t.Errorf("%s: the platform has the file %+v", c.name, m.File)
		}
	}
	long := &channel.File{Name: "long.png", MIME: "image/png", Path: w.temp(Picture(2000, 1))}
	if _, m := w.sends(channel.Outbound{Text: "see", File: long}); m.File == nil ||
		!bytes.Equal(m.File.Data, Picture(2000, 1)) {
		w.t.Errorf("the platform has the file %+v", m.File)
	}
}

// Picture returns a picture in the format PNG.
func Picture(width, height int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))) // a buffer takes everything
	return b.Bytes()
}

func noFileOut(w *world) {
	file := &channel.File{Name: "log.txt", Path: w.temp([]byte("text"))}
	_, err := w.Send(w.patient(), channel.Outbound{Chat: w.ada.Chat, Text: "see", File: file, Key: "k"})
	if w.Limits().Files || kindOf(err) != rejected {
		w.t.Errorf("Limits.Files is %t, and a file gets %v; want false and a refusal", w.Limits().Files, err)
	}
}

var yesAndNo = []channel.Button{
	{Label: "Yes <&>", Data: "q:" + strings.Repeat("x", 61) + "1"}, {Label: "No", Data: "q:2"},
}

func button(w *world) {
	if !w.Limits().Buttons {
		w.t.Fatal("Limits.Buttons is false")
	}
	id, m := w.sends(channel.Outbound{Text: "May I?", Buttons: yesAndNo})
	if !slices.Equal(m.Buttons, yesAndNo) {
		w.t.Errorf("the buttons are %+v", m.Buttons)
	}
	names := id
	if _, lacks := w.s.Lacks[Replies]; lacks {
		names = ""
	}
	for _, b := range yesAndNo {
		w.p.Press(w.ada, id, b.Data)
		last := w.write("after " + b.Label)
		_, all := w.until(last, false)
		i := slices.IndexFunc(all, func(m channel.Inbound) bool { return m.Button == b.Data })
		if i < 0 {
			w.t.Fatalf("the press of %q never came; got %+v", b.Label, all)
		}
		if m := all[i]; m.Text != b.Label || m.ReplyTo != names || m.Contact != w.ada.Contact || m.Chat != w.ada.Chat ||
			m.Own || m.ID == "" || m.ID == last {
			w.t.Errorf("the press is %+v", m)
		}
	}
}

func noButtons(w *world) {
	if w.Limits().Buttons {
		w.t.Error("Limits.Buttons is true")
	}
	if _, m := w.sends(channel.Outbound{Text: "1. Yes\n2. No"}); m.Shown != "1. Yes\n2. No" {
		w.t.Errorf("the numbered options are %q", m.Shown)
	}
}

func reply(w *world) {
	id := w.write("first")
	w.receives(id)
	sent, got := w.sends(channel.Outbound{Text: "an answer", ReplyTo: id})
	if got.ReplyTo != id {
		w.t.Errorf("the answer names %q, want %q", got.ReplyTo, id)
	}
	m := w.receives(w.p.Write(w.ada, Message{Text: "thanks", ReplyTo: sent}))
	if m.ReplyTo != sent || m.Text != "thanks" || m.Chat != w.ada.Chat {
		w.t.Errorf("the reply is %+v, want it to name %q", m, sent)
	}
}

// noReplies checks that an answer arrives although the platform cannot show the answered message.
func noReplies(w *world) {
	id := w.write("first")
	w.receives(id)
	if _, got := w.sends(channel.Outbound{Text: "an answer", ReplyTo: id}); got.Shown != "an answer" {
		w.t.Errorf("the answer is %+v", got)
	}
}

func edit(w *world) {
	e, ok := w.Channel.(channel.Editor)
	if !ok {
		w.t.Fatal("the channel edits no messages")
	}
	id, _ := w.sends(channel.Outbound{Text: "May I?", Buttons: yesAndNo})
	for range 2 { // the second edit changes nothing
		if err := e.Edit(w.patient(), id, channel.Outbound{Chat: w.ada.Chat, Text: "Ada said yes", Key: "e"}); err != nil {
			w.t.Fatal(err)
		}
	}
	if m := w.message(id); m.Shown != "Ada said yes" || len(m.Buttons) > 0 || !m.Edited || len(w.p.Sent()) != 1 {
		w.t.Errorf("the message is %+v of %d", m, len(w.p.Sent()))
	}
	if s, ok := w.Channel.(channel.Streamer); ok {
		if err := s.Remove(w.patient(), id); err != nil {
			w.t.Error(err)
		}
		if s.Pace(w.ada.Chat) <= 0 {
			w.t.Error("the pace of edits is 0")
		}
		if list := w.p.Sent(); len(list) > 0 && !list[0].Removed {
			w.t.Errorf("the removed message is %+v", list[0])
		}
	}
}

func noEdits(w *world) {
	if _, ok := w.Channel.(channel.Editor); ok {
		w.t.Error("the channel edits messages although its platform does not")
	}
}

// order checks the contract of After with messages before and after a sent one.
func order(w *world) {
	before := w.write("before")
	m := w.receives(before)
	id, _ := w.sends(channel.Outbound{Text: "a card"})
	if w.After(m, id) {
		w.t.Error("an earlier message counts as later")
	}
	after := w.write("after")
	for {
		list, err := w.pollOnce(false) // After is about the messages of the last Poll
		if err != nil {
			w.t.Fatal(err)
		}
		if i := slices.IndexFunc(list, func(m channel.Inbound) bool { return m.ID == after }); i >= 0 {
			if !w.After(list[i], id) {
				w.t.Error("a later message does not count as later")
			}
			for _, unknown := range []string{"", "x", "1:1"} {
				if w.After(list[i], unknown) {
					w.t.Errorf("it counts as later than the unknown message %q", unknown)
				}
			}
			return
		}
	}
}

// noOrder checks that an unknown order is no order.
func noOrder(w *world) {
	m := w.receives(w.write("before"))
	id, _ := w.sends(channel.Outbound{Text: "a card"})
	if w.After(m, id) {
		w.t.Error("an earlier message counts as later")
	}
}

// wrongClock checks that no clock decides about the order.
func wrongClock(w *world) {
	w.p.Skew(40 * time.Minute)
	before := w.receives(w.write("before"))
	w.p.Skew(-80 * time.Minute)
	id, _ := w.sends(channel.Outbound{Text: "a card"})
	if w.After(before, id) {
		w.t.Error("an earlier message counts as later")
	}
	if m := w.receives(w.write("after")); m.Text != w.words("after") {
		w.t.Errorf("got %+v", m)
	}
}

// unrecorded checks that the platform delivers a message again if the process died before it recorded the message.
func unrecorded(w *world) {
	w.receives(w.write("first"))
	id := w.write("second")
	for seen := false; !seen; {
		list, err := w.pollOnce(false)
		if err != nil {
			w.t.Fatal(err)
		}
		seen = slices.ContainsFunc(list, func(m channel.Inbound) bool { return m.ID == id })
	}
	w.restart()
	if m := w.receives(id); m.Text != w.words("second") {
		w.t.Errorf("it came again as %+v", m)
	}
}

// restarted checks that nothing written during a restart is lost.
func restarted(w *world) {
	first := w.write("first")
	w.receives(first)
	w.end()
	second := w.write("second")
	w.bot = w.dial(w.cursor)
	if m := w.receives(second); m.Text != w.words("second") {
		w.t.Errorf("got %+v", m)
	}
	w.restart()
	if m := w.receives(w.write("third")); m.Text != w.words("third") {
		w.t.Errorf("got %+v", m)
	}
}

func redelivery(w *world) {
	id := w.write("first")
	first := w.receives(id)
	w.p.Redeliver()
	last := w.write("last")
	_, all := w.until(last, true)
	for _, m := range all {
		if m.ID != last && (m.ID != id || m.Text != first.Text || m.Contact != first.Contact) {
			w.t.Errorf("a repeated message is %+v, want %+v", m, first)
		}
	}
}

// lateRedelivery repeats a message to another process.
func lateRedelivery(w *world) {
	id := w.write("first")
	first := w.receives(id)
	w.receives(w.write("second")) // the first message is certainly recorded
	w.restart()
	w.p.Redeliver()
	last := w.write("last")
	_, all := w.until(last, true)
	for _, m := range all {
		if m.Text == "first" && (m.ID != id || m.Contact != first.Contact) {
			w.t.Errorf("a repeated message is %+v, want %+v", m, first)
		}
	}
}

func reversed(w *world) {
	w.receives(w.write("zero"))
	var one, two string
	w.p.Reverse(func() { one, two = w.write("one"), w.write("two") })
	last := w.write("last")
	_, all := w.until(last, false)
	got := map[string]string{}
	for _, m := range all {
		got[m.ID] = m.Text
	}
	if got[one] != "one" || got[two] != "two" {
		w.t.Errorf("got %v, want %q and %q", got, one, two)
	}
}

func echo(w *world) {
	w.receives(w.write("first"))
	w.sends(channel.Outbound{Text: "the bot's own words"})
	w.p.Echo()
	last := w.write("last")
	_, all := w.until(last, false)
	for _, m := range all {
		if m.ID != last && !m.Own {
			w.t.Errorf("the bot's own message is %+v", m)
		}
	}
}

// outcome is the expected result of a fault.
var outcome = map[Fault]struct {
	kinds []kind
	sent  bool
}{
	RateLimit:       {[]kind{notSent}, false},
	ServerError:     {[]kind{unknown, notSent}, false},
	LateServerError: {[]kind{unknown, sent}, true},
	Half:            {[]kind{unknown, sent}, true},
	Drop:            {[]kind{unknown, notSent}, false},
	LateDrop:        {[]kind{unknown, sent}, true},
}

// sendingFaults checks the kind of each error, and that no fault makes two messages. An error must not say "not
// sent" if the message may have arrived.
func sendingFaults(w *world) {
	for f, want := range outcome {
		if !w.s.Has(f) {
			continue
		}
		w.faultySend(f, want.kinds, want.sent, channel.Outbound{Text: "hi " + string(f)})
		if _, lacks := w.s.Lacks[FilesOut]; !lacks {
			// A part may have arrived before the fault, so the kind may be "unknown".
			w.faultySend(f, append(want.kinds, unknown), want.sent, channel.Outbound{
				Text: w.caption("a file, " + string(f)), File: &channel.File{Name: "a.txt", Path: w.temp([]byte("x"))}})
		}
	}
}

func (w *world) faultySend(f Fault, kinds []kind, arrives bool, m channel.Outbound) {
	w.t.Helper()
	before := len(w.p.Sent())
	w.p.Fail(Sending, f)
	m.Chat, m.Key = w.ada.Chat, string(f)+m.Text
	_, err := w.Send(w.patient(), m)
	w.clean(err)
	var limit *channel.RateLimitError
	if f == RateLimit && errors.As(err, &limit) && limit.After != Pause {
		w.t.Errorf("%s: the pause is %s, want %s", f, limit.After, Pause)
	}
	if f == RateLimit && m.File == nil && limit == nil {
		w.t.Errorf("%s: %v is no RateLimitError", f, err)
	}
	n := len(w.p.Sent()) - before
	if !slices.Contains(kinds, kindOf(err)) || n > 1 || m.File == nil && (n == 1) != arrives {
		w.t.Errorf("%s: %s and %d messages; %v", f, kindOf(err), n, err)
	}
	if kindOf(err) == notSent && n > 0 {
		w.t.Errorf("%s: the error says that nothing was sent: %v", f, err)
	}
	w.sends(channel.Outbound{Text: "afterwards", Key: m.Key + " afterwards"}) // the fault has passed
}

func editingFaults(w *world) {
	id, _ := w.sends(channel.Outbound{Text: "first"})
	for f, want := range outcome {
		if !w.s.Has(f) {
			continue
		}
		w.p.Fail(Sending, f)
		out := channel.Outbound{Chat: w.ada.Chat, Text: "after " + string(f), Key: string(f)}
		err := w.Channel.(channel.Editor).Edit(w.patient(), id, out)
		w.clean(err)
		if !slices.Contains(want.kinds, kindOf(err)) {
			w.t.Errorf("%s: %s: %v", f, kindOf(err), err)
		}
		if err := w.Channel.(channel.Editor).Edit(w.patient(), id, out); err != nil {
			w.t.Errorf("%s: the second edit: %v", f, err)
		}
		if m := w.message(id); m.Shown != out.Text || len(w.p.Sent()) != 1 {
			w.t.Errorf("%s: the message is %+v", f, m)
		}
	}
}

// receivingFaults checks that each message arrives in spite of faults.
func receivingFaults(w *world) {
	w.receives(w.write("first"))
	for _, f := range []Fault{RateLimit, ServerError, Half, Drop, LateDrop} {
		if !w.s.Has(f) {
			continue
		}
		w.p.Fail(Receiving, f, f)
		m, _ := w.until(w.write("after "+string(f)), true)
		if m.Text != w.words("after "+string(f)) {
			w.t.Errorf("got %+v", m)
		}
	}
}

func revoked(w *world) {
	w.receives(w.write("first"))
	w.p.Revoke()
	_, err := w.Send(w.patient(), channel.Outbound{Chat: w.ada.Chat, Text: "hi", Key: "k"})
	w.clean(err)
	if kindOf(err) != notSent || len(w.p.Sent()) > 0 {
		w.t.Errorf("sending without a token: %s: %v", kindOf(err), err)
	}
	for err = nil; err == nil; {
		_, err = w.pollOnce(true)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		w.t.Errorf("receiving without a token: %v", err)
	}
}

func deleted(w *world) {
	w.receives(w.write("first"))
	w.p.Delete(w.ada)
	_, err := w.Send(w.patient(), channel.Outbound{Chat: w.ada.Chat, Text: "hi", Key: "k"})
	w.clean(err)
	if kindOf(err) != rejected || len(w.p.Sent()) > 0 {
		w.t.Errorf("sending to a deleted chat: %s: %v", kindOf(err), err)
	}
}

func ended(w *world) {
	w.receives(w.write("first"))
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	_, err := w.Send(ctx, channel.Outbound{Chat: w.ada.Chat, Text: "hi", Key: "k"})
	if kindOf(err) != notSent || len(w.p.Sent()) > 0 {
		w.t.Errorf("sending after the end: %s: %v", kindOf(err), err)
	}
	for err = nil; err == nil; { // messages that had arrived may come first
		var next string
		if _, next, err = w.Poll(ctx, w.cursor); err == nil {
			w.cursor = next
		}
	}
	if !errors.Is(err, context.Canceled) {
		w.t.Errorf("receiving after the end: %v", err)
	}
	if m := w.receives(w.write("last")); m.Text != w.words("last") {
		w.t.Errorf("got %+v", m)
	}
}

// closedConnecting checks that Close ends a Poll that connects to a platform without an answer.
func closedConnecting(w *world) {
	address, connected := silent(w.t, w.p.Address())
	ch, err := w.s.Dial(address, w.files)
	if err != nil {
		w.t.Fatal(err)
	}
	w.closes(ch, "", connected)
}

// closedWaiting checks that Close ends a Poll that waits for messages.
func closedWaiting(w *world) {
	w.receives(w.write("first"))
	running := make(chan struct{})
	close(running)
	w.closes(w.Channel, w.cursor, running)
}
