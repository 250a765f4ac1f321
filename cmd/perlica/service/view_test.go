package service

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
)

// TestScreenRows checks that the usual view fits 80 columns, shows names and no ids, and counts the waiting inputs.
func TestScreenRows(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }() // Nothing was written to the file.
	a := &app{&frame.App{Stderr: null, Getenv: func(string) string { return "" }}}
	s := newServiceView(a)
	ada := service.Contact{Channel: "telegram", ID: "4711471147", Name: "Ada Lovelace",
		Rights: access.Rights{access.Ask, access.Approve, access.Admin}}
	twin := service.Contact{Channel: "telegram", ID: "1", Name: "Twin"}
	other := service.Contact{Channel: "telegram", ID: "2", Name: "Twin"}
	text := s.renderText(service.Live{
		Status: service.Status{
			Since: time.Now(), Unsent: 12, Contacts: []service.Contact{ada, twin, other}, Unconfirmed: []service.Contact{ada,
				twin},
			Channels: []service.ChannelStatus{{Name: "imessage", Error: leftOut, Since: time.Now()}},
		},
		Turns: []string{"Ada Lovelace (telegram): hello"}, Questions: []string{"Ada Lovelace (telegram): Run the tests"},
		Queued: 30, InLine: 20,
	}, (&invitation{code: "123456"}).inviteText())
	for row := range strings.Lines(text) {
		if n := runewidth.StringWidth(strings.TrimSuffix(row, "\n")); n > 80 || strings.Contains(row, "…") {
			t.Errorf("%d columns: %s", n, row)
		}
	}
	for _, want := range []string{
		"  waiting   30 messages of 20 contacts to be answered\n", "  sending   12 messages\n",
		"  contacts  2 on record only",
		"  pairing   send 123 456 to a channel", "  contact   Ada Lovelace (telegram): ask, approve, admin\n",
		"  contact   Twin (telegram:1)", "  contact   Twin (telegram:2)",
		"  question  Ada Lovelace (telegram): Run the tests\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, ada.ID) {
		t.Errorf("an id is shown:\n%s", text)
	}
}
