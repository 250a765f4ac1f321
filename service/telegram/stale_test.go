package telegram_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/perlica/perlica/service/telegram"
	"github.com/perlica/perlica/service/telegram/telegramtest"
)

// TestStaleCursor checks that an offset of last week confirms nothing, because Telegram may have
// restarted its numbers by then.
func TestStaleCursor(t *testing.T) {
	s := telegramtest.New("1:abc")
	h := httptest.NewServer(s)
	defer h.Close()
	c, err := telegram.New(telegram.Options{Token: "1:abc", BaseURL: h.URL, PollFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	c.SetNow(func() time.Time { return now })
	s.Say(1, 2, "Ada", "numbered anew")
	before := fmt.Sprintf("%d@%d", 900_000_000, now.Unix())
	now = now.Add(7 * 24 * time.Hour)
	list, next, err := c.Poll(t.Context(), before)
	if err != nil || len(list) != 1 || next != fmt.Sprintf("2@%d", now.Unix()) {
		t.Errorf(`got %+v, %q, %v; want err == nil && len(list) == 1 && next == fmt.Sprintf("2@%%d", now.Unix())`,
			list, next, err)
	}
	if _, _, err := c.Poll(t.Context(), next); err != nil || s.Unconfirmed() != 0 {
		t.Errorf("a fresh cursor does not confirm: %d, %v", s.Unconfirmed(), err)
	}
}
