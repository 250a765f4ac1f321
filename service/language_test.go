package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// TestLanguage checks that each contact is addressed in its chosen language, also by the next
// bridge.
func TestLanguage(t *testing.T) {
	w := newWorld(t)
	change := func(o *service.Options) { o.Settings.Ack, o.Settings.Language = service.AutoAck, language.English }
	s := w.serve(local.DefaultLimits(), change)
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	alice.say("/language tlh")
	alice.expect("there is no language")
	alice.say("/language 中文")
	alice.expect("从现在起用中文和你对话。")
	alice.say("hello")
	alice.expect("已收到🫡")
	alice.expect("You said: hello")
	bob.say("hello")
	bob.expect("Received 🫡")
	alice.say(`@ask execute "May I" command="make"`)
	card := alice.expect("请")
	for _, text := range []string{"仅此一次", "问题 `", "  运行    │ make", "  级别      普通"} {
		if !strings.Contains(card.Text, text) {
			t.Errorf("%q is missing in %s", text, card.Text)
		}
	}
	alice.deliver(local.Message{Text: "1", ReplyTo: card.Key})
	alice.expect("回答：")
	alice.say("/help")
	alice.expect("停止正在进行的一轮")
	alice.say("/nosuch")
	alice.expect("没有命令 /nosuch")
	alice.say("/mode plan")
	alice.expect("你在这里无权这样做")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.serve(local.DefaultLimits(), change)
	alice.say("/queue")
	alice.expect("你没有等待中的消息。")
	bob.say("/queue")
	bob.expect("You have no waiting messages.")
}

// TestConfiguredLanguage checks that unpaired contacts, and contacts without a chosen language, are
// addressed in the configured language.
func TestConfiguredLanguage(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits(), func(o *service.Options) { o.Settings.Language = language.Chinese })
	alice := w.phone("alice")
	if _, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	alice.say("000000")
	alice.expect("配对码不对")
	bob := w.phone("bob")
	code, err := service.OpenPairing(t.Context(), s.r.Log(), service.DefaultRights(), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bob.say(code)
	bob.expect("配对成功")
	old := local.Message{Text: "old", Sent: time.Now().Add(-3 * time.Hour)}
	bob.deliver(old)
	bob.expect("这条消息是 3 小时前发的，没有处理：超过 1 小时的消息不再回答。")
}

// reacting is a platform with reactions.
type reacting struct {
	*local.Channel
	mu     *sync.Mutex
	emojis *[]string
	fail   error
}

func (c reacting) React(_ context.Context, message, emoji string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.emojis = append(*c.emojis, emoji)
	return c.fail
}

// TestReaction checks that a reaction acknowledges a message if the platform has reactions. If the
// reaction is refused or fails, a text acknowledges it.
func TestReaction(t *testing.T) {
	for _, fail := range []error{nil, &channel.RejectedError{Why: "400 REACTION_INVALID"},
		errors.New("the server answers 500")} {
		w := newWorld(t)
		var emojis []string
		s := w.serve(local.DefaultLimits(), func(o *service.Options) {
			o.Settings.Ack = service.AutoAck
			o.Channels[0] = reacting{o.Channels[0].(*local.Channel), &sync.Mutex{}, &emojis, fail}
		})
		alice := w.phone("alice")
		w.pair(s, alice)
		alice.say("hello")
		alice.expect("You said: hello")
		if n := alice.count("Received"); (n == 1) != (fail != nil) || n > 1 {
			t.Errorf("%v: %d words", fail, n)
		}
		if err := s.stop(); err != nil || len(emojis) != 1 || emojis[0] != "🫡" {
			t.Errorf("%q, %v", emojis, err)
		}
	}
}

// noEdits is a platform with buttons that refuses every edit.
type noEdits struct{ *local.Channel }

func (noEdits) Edit(context.Context, string, channel.Outbound) error {
	return &channel.RejectedError{Why: "404 Not Found"}
}

// TestAnEditThatIsRefused checks that the text of a refused edit comes as a separate message.
func TestAnEditThatIsRefused(t *testing.T) {
	w := newWorld(t)
	limits := local.DefaultLimits()
	limits.Buttons = true
	s := w.serve(limits, func(o *service.Options) {
		o.Settings.Grace = time.Millisecond
		o.Channels[0] = noEdits{o.Channels[0].(*local.Channel)}
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say(`@ask execute "May I" command="make"`)
	card := alice.expect("Press a button")
	alice.say("and this?")
	held := alice.expect("It is held")
	alice.deliver(local.Message{Text: held.Buttons[1].Label, Button: held.Buttons[1].Data, ReplyTo: held.Key})
	alice.expect("Taken back: it was not sent to the agent.")
	alice.allow(card)
	alice.expect("answered at")
}

// TestNothingRawOnAPhone checks that a phone shows no event type and no recorded reason.
func TestNothingRawOnAPhone(t *testing.T) {
	w := newWorld(t)
	s := w.serve(local.DefaultLimits())
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.say("hello")
	alice.expect("You said: hello")
	alice.say("/log")
	shown := alice.expect("You said: hello").Text
	for _, word := range strings.FieldsFunc(shown, func(r rune) bool { return unicode.IsSpace(r) || r == '`' }) {
		if strings.HasPrefix(word, "llm.") || strings.HasPrefix(word, "acp.") || strings.HasPrefix(word, "inbound.") {
			t.Errorf("%q is shown:\n%s", word, shown)
		}
	}
}
