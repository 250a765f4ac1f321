package webhook_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/webhook"
)

// TestAfter checks that a message counts as later than a sent question if the receiver had confirmed the question
// before the message's first attempt. A difference of some seconds between the clocks does not matter.
func TestAfter(t *testing.T) {
	r := receive(t, func(http.ResponseWriter, int) {})
	for id, want := range map[string]bool{"early": false, "late": true} {
		c := open(t, to(r.URL), func(o *webhook.Options) {
			if id == "early" {
				o.Handover = 500 * time.Millisecond
			}
		})
		if id == "early" { // its first attempt, which is not accepted
			if a := <-send(t, c, hello(id)); a.status != http.StatusServiceUnavailable {
				t.Fatalf("got %+v; want a.status == http.StatusServiceUnavailable", a)
			}
		}
		card, err := c.Send(t.Context(), channel.Outbound{Chat: "desk", Text: "card", Key: "k1"})
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, hello(id))
		list, next := taken(t, c, "")
		if got := c.After(list[0], card); got != want {
			t.Errorf("%s is behind the card: %t", id, got)
		}
		if c.After(list[0], "k2") || c.After(channel.Inbound{ID: "unknown"}, card) {
			t.Error("what is not known has a place")
		}
		accept(t, c, next)
	}
}

// TestAGatewayThatWasCutOff checks a message written long before the card and delivered later. It
// is not an answer. Two seconds of difference in either direction do not matter.
func TestAGatewayThatWasCutOff(t *testing.T) {
	r := receive(t, func(http.ResponseWriter, int) {})
	c := open(t, to(r.URL))
	card, err := c.Send(t.Context(), channel.Outbound{Chat: "desk", Text: "card", Key: "k1"})
	if err != nil {
		t.Fatal(err)
	}
	cursor := ""
	for i, at := range []struct {
		ago  time.Duration
		want bool
	}{{time.Hour, false}, {2 * time.Second, true}, {-2 * time.Second, true}} {
		sent := time.Now().Add(-at.ago).UTC().Format(time.RFC3339Nano)
		send(t, c, fmt.Sprintf(`{"id":"m%s","chat":"desk","contact":"ada","text":"1","sent":%q}`, strconv.Itoa(i), sent))
		list, next := taken(t, c, cursor)
		if got := c.After(list[0], card); got != at.want {
			t.Errorf("written %s before: %t", at.ago, got)
		}
		accept(t, c, next)
		cursor = next
	}
}

// TestIDsAreOneLine checks that no shown value of a message contains a line break.
func TestIDsAreOneLine(t *testing.T) {
	c := open(t)
	for _, body := range []string{
		`{"id":"a\nb","chat":"desk","contact":"ada","text":"x"}`, `{"id":"a","chat":"desk","contact":"ada\nb","text":"x"}`,
		`{"id":"a","chat":"de\u001bsk","contact":"ada","text":"x"}`,
	} {
		if a := <-send(t, c, body); a.status != http.StatusBadRequest {
			t.Errorf("%s is answered with %+v", body, a)
		}
	}
}
