package discord_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/perlica/perlica/service/discord/discordtest"
)

// toPlatform sends each request to the platform instead of discord.com.
type toPlatform string

func (to toPlatform) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host, r.Host = "http", string(to), string(to)
	return http.DefaultTransport.RoundTrip(r)
}

// TestOtherClient checks the platform with the library discordgo: its session, its messages, a press, a resume, and its
// errors.
func TestOtherClient(t *testing.T) {
	w := start(t, nil)
	host := strings.TrimPrefix(w.url, "http://")
	s, err := discordgo.New("Bot " + token)
	if err != nil {
		t.Fatal(err)
	}
	s.Client = &http.Client{Transport: toPlatform(host)}
	s.Identify.Intents = discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages |
		discordgo.IntentsMessageContent
	got, pressed := make(chan *discordgo.Message, 9), make(chan *discordgo.InteractionCreate, 9)
	s.AddHandler(func(_ *discordgo.Session, m *discordgo.MessageCreate) { got <- m.Message })
	s.AddHandler(func(s *discordgo.Session, i *discordgo.InteractionCreate) {
		if err := s.InteractionRespond(i.Interaction,
			&discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredMessageUpdate}); err != nil {
			t.Error(err)
		}
		pressed <- i
	})
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // the test has ended
	w.SayMore(room, ada, "Ada", discordtest.Mention("hello"))
	if m := receive(t, got); m.Author.ID != ada || m.GuildID == "" || len(m.Mentions) != 1 ||
		time.Since(m.Timestamp) > time.Hour || m.Type != discordgo.MessageTypeDefault {
		t.Errorf("got %+v", m)
	}
	sent, err := s.ChannelMessageSendComplex(dm, &discordgo.MessageSend{Content: "May I?",
		Components: []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{
			discordgo.Button{Label: "Yes", CustomID: "q:1", Style: discordgo.SecondaryButton}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if m := receive(t, got); m.ID != sent.ID || !m.Author.Bot || len(m.Components) != 1 {
		t.Errorf("its own message is %+v", m)
	}
	w.Press(dm, ada, "Ada", sent.ID, "q:1", time.Minute)
	if i := receive(t, pressed); i.MessageComponentData().CustomID != "q:1" || i.User.ID != ada ||
		i.Message.ID != sent.ID || len(w.Acknowledged()) != 1 {
		t.Errorf("the press is %+v", i)
	}
	if _, err := s.ChannelMessageEdit(dm, sent.ID, "yes"); err != nil || w.Messages()[0].Text != "yes" {
		t.Errorf("an edit: %v", err)
	}
	if list, err := s.ChannelMessages(room, 10, "", "", ""); err != nil || len(list) != 1 || list[0].Author.ID != ada {
		t.Errorf("the history: %+v, %v", list, err)
	}
	w.Tell(7, nil) // the library resumes its session
	if err := w.Wait(t.Context(), func() bool { _, resumed, _ := w.Sessions(); return resumed == 1 }); err != nil {
		t.Fatal(err)
	}
	w.Say(dm, ada, "Ada", "after the resume")
	if m := receive(t, got); m.Content != "after the resume" {
		t.Errorf("got %+v", m)
	}
	w.Deny(dm, 50007)
	_, err = s.ChannelMessageSend(dm, "x")
	const code = discordgo.ErrCodeCannotSendMessagesToThisUser
	if refused, ok := err.(*discordgo.RESTError); !ok || refused.Message.Code != code {
		t.Errorf("a refusal: %v", err)
	}
}

func receive[T any](t *testing.T, from chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	return v
}
