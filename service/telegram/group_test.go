package telegram_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/perlica/perlica/service/channel"
)

// TestTopics checks that answers to a message in a forum's topic go to this topic: texts, files and
// typing signs. A message in a topic is not a reply for that reason alone.
func TestTopics(t *testing.T) {
	w := start(t, nil)
	forum := map[string]any{"id": -100, "type": "supergroup", "is_forum": true}
	w.SayMore(-100, 7, "Ada", map[string]any{
		"text": "in a topic", "chat": forum, "message_thread_id": 5, "is_topic_message": true,
		"reply_to_message": map[string]any{"message_id": 5, "chat": forum},
	})
	w.SayMore(-100, 7, "Ada", map[string]any{"text": "in a row of answers", "chat": forum, "message_thread_id": 9})
	list, _ := w.poll(t, "")
	if len(list) != 2 || list[0].Chat != "-100/5" || list[0].ReplyTo != "" || !list[0].Shared || list[1].Chat != "-100" {
		t.Fatalf("%+v", list)
	}
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []channel.Outbound{
		{Chat: "-100/5", Text: "a text", ReplyTo: list[0].ID},
		{Chat: "-100/5", Text: "a file", File: &channel.File{Name: "a.txt", Path: path}},
		{Chat: "-100", Text: "elsewhere"},
	} {
		if _, err := w.bot.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	sent := w.Messages()
	if sent[0].Thread != 5 || sent[0].ReplyTo != 1 || sent[1].Thread != 5 || sent[2].Thread != 0 {
		t.Errorf("got %+v; want sent[0].Thread == 5 && sent[0].ReplyTo == 1 && sent[1].Thread == 5 && sent[2].Thread == 0",
			sent)
	}
	if err := w.bot.Typing(t.Context(), "-100/5"); err != nil {
		t.Error(err)
	}
	if _, err := w.bot.Send(t.Context(), channel.Outbound{Chat: "-100/x", Text: "x"}); err == nil {
		t.Error("a chat that is none was taken")
	}
}

// TestAlbum checks that the messages of an album become one with all files, also if some arrive a
// moment later.
func TestAlbum(t *testing.T) {
	w := start(t, nil)
	picture := func(members map[string]any) {
		m := map[string]any{"media_group_id": "g", "photo": []any{map[string]any{"file_id": "p", "file_size": 3}}}
		maps.Copy(m, members)
		w.SayMore(42, 7, "Ada", m)
	}
	w.Say(42, 7, "Ada", "before")
	picture(nil)
	later := make(chan error, 1)
	go func() {
		later <- w.Wait(t.Context(), func() bool { return w.Calls("getUpdates") > 0 && w.Unconfirmed() == 2 })
		picture(map[string]any{"caption": "two pictures"})
	}()
	list, next := w.poll(t, "")
	if err := <-later; err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[1].ID != "42:2" || len(list[1].Files) != 2 || list[1].Text != "two pictures" {
		t.Fatalf("%+v", list)
	}
	w.Say(42, 7, "Ada", "behind")
	if list, _ := w.poll(t, next); len(list) != 1 || list[0].Text != "behind" {
		t.Errorf("then %+v", list)
	}
}

// TestCommandsInGroups checks that a command may name this bot. A command for another bot is
// ignored. An edited message is reported as unread.
func TestCommandsInGroups(t *testing.T) {
	w := start(t, nil)
	for _, text := range []string{"/help@Test_Bot", "/choose@test_bot 1 a@b", "/help@other_bot", "/path/a@b is full",
		"mail a@other_bot"} {
		w.Say(-100, 7, "Ada", text)
	}
	from := map[string]any{"id": 7, "first_name": "Ada"}
	chat := map[string]any{"id": -100}
	w.Push(map[string]any{"edited_message": map[string]any{"message_id": 1, "edit_date": 9, "date": 1, "from": from,
		"chat": chat, "text": "/stop"}})
	w.Push(map[string]any{"edited_message": map[string]any{"message_id": 1, "edit_date": 9, "date": 1, "from": from,
		"chat": chat, "location": map[string]any{}}})
	list, _ := w.poll(t, "")
	var texts []string
	for _, m := range list {
		texts = append(texts, m.Text+m.Unread)
	}
	want := []string{"/help", "/choose 1 a@b", "/path/a@b is full", "mail a@other_bot", "an edited message"}
	if len(texts) != len(want) {
		t.Fatalf("got %q; want len(texts) == len(want)", texts)
	}
	for i := range want {
		if texts[i] != want[i] {
			t.Errorf("got %q, want %q", texts[i], want[i])
		}
	}
	if list[4].ID == list[0].ID {
		t.Error("the edited message has the id of the first")
	}
}
