package imessage

import (
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// TestAfter checks that the rows of messages are their order. A sent message has the row that imsg reports, or the row
// in which Messages shows the message. The order of an unknown message is unknown.
func TestAfter(t *testing.T) {
	w := start(t)
	w.write(t, db{said(5, 1, "old")})
	_, cursor := w.poll(t, "")
	sent, err := w.Send(t.Context(), channel.Outbound{Chat: "1", Text: "card"})
	if err != nil || sent != "SENT" { // in row 7
		t.Fatalf(`got %v, %v; want err == nil && sent == "SENT"`, sent, err)
	}
	mine := said(9, 1, "another card")
	mine.FromMe, mine.Sender = true, ""
	w.write(t, db{said(5, 1, "old"), said(6, 1, "before"), said(8, 1, "between"), mine, said(10, 1, "behind")})
	list, _ := w.poll(t, cursor)
	if len(list) != 4 {
		t.Fatalf("got %+v; want len(list) == 4", list)
	}
	for i, want := range []bool{false, true, true, true} {
		if got := w.After(list[i], sent); got != want {
			t.Errorf("%s is behind the card: %t", list[i].Text, got)
		}
	}
	if w.After(list[1], "G9") || !w.After(list[3], "G9") || w.After(list[3], "") || w.After(list[3], "unknown") ||
		w.After(channel.Inbound{ID: "G99"}, sent) {
		t.Error("the other card, or what is not known, has another place")
	}
}
