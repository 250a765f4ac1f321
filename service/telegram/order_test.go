package telegram_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// TestAfter checks that the messages of a chat have the order of their numbers. Clocks do not matter. The numbers of
// two chats are unrelated.
func TestAfter(t *testing.T) {
	w := start(t, nil)
	w.SayMore(42, 7, "Ada", map[string]any{"text": "before", "date": 4_000_000_000})
	sent, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "42", Text: "card"})
	if err != nil {
		t.Fatal(err)
	}
	w.SayMore(42, 7, "Ada", map[string]any{"text": "behind", "date": 1})
	w.Say(43, 7, "Ada", "elsewhere")
	list, _ := w.poll(t, "")
	if len(list) != 3 || w.bot.After(list[0], sent) || !w.bot.After(list[1], sent) || w.bot.After(list[2], sent) {
		t.Errorf("%+v behind %s", list, sent)
	}
	for _, id := range []string{"", "press:1", "42:", "42:0", "42:x", "elsewhere"} {
		if w.bot.After(list[1], id) || w.bot.After(channel.Inbound{ID: id}, sent) {
			t.Errorf("%q has a place", id)
		}
	}
}

// TestRepliesElsewhere checks that a reply to a story, or to a message of another chat, counts as a
// reply but not to a message here.
func TestRepliesElsewhere(t *testing.T) {
	w := start(t, nil)
	here := map[string]any{"message_id": 5, "date": 1, "chat": map[string]any{"id": 42}}
	for _, more := range []map[string]any{
		{"reply_to_story": map[string]any{"id": 1, "chat": map[string]any{"id": 9}}},
		{"external_reply": map[string]any{"message_id": 5}},
		{"external_reply": map[string]any{"message_id": 5}, "quote": map[string]any{"text": "x"}, "reply_to_message": here},
		{"quote": map[string]any{"text": "x"}},
		{"reply_to_message": here, "quote": map[string]any{"text": "x"}}, // a part of that message
	} {
		more["text"] = "1"
		w.SayMore(42, 7, "Ada", more)
	}
	list, _ := w.poll(t, "")
	if len(list) != 5 {
		t.Fatalf("got %+v", list)
	}
	for i, m := range list {
		if m.ReplyTo == "" || (m.ReplyTo == "42:5") != (i == 4) || strings.Contains(m.ReplyTo, ":") != (i == 4) {
			t.Errorf("%d answers %q", i, m.ReplyTo)
		}
	}
}

// TestAnothersWords checks that words of another bot do not count as a person's present words, because bots are not
// people. Words that a person wrote long before sending them do not count, either.
func TestAnothersWords(t *testing.T) {
	w := start(t, nil)
	w.SayMore(42, 7, "Ada", map[string]any{"text": "1", "via_bot": map[string]any{"id": 3, "is_bot": true}})
	w.SayMore(42, 7, "Ada", map[string]any{"text": "1", "is_from_offline": true})
	w.SayMore(42, 8, "Bot", map[string]any{"text": "1", "from": map[string]any{"id": 8, "is_bot": true, "first_name": "Bot"}})
	list, _ := w.poll(t, "")
	if len(list) != 2 || !list[0].Quoted || !list[1].Quoted {
		t.Errorf("got %+v", list)
	}
}
