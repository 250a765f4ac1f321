package slack_test

import (
	"context"
	"strings"
	"testing"

	other "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	othertest "github.com/slack-go/slack/slacktest"
	"github.com/slack-go/slack/socketmode"

	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/slack"
	"github.com/perlica/perlica/service/slack/slacktest"
)

// TestForeignClient lets the client of another library use the server of these tests. A difference between this server
// and Slack would show in its errors.
func TestForeignClient(t *testing.T) {
	s := slacktest.New(t)
	api := other.New(slacktest.BotToken, other.OptionAppLevelToken(slacktest.AppToken), other.OptionAPIURL(s.URL+"/"))
	who, err := api.AuthTest()
	if err != nil || who.UserID != slacktest.BotUser || who.BotID != slacktest.BotID {
		t.Errorf("auth.test: %+v, %v", who, err)
	}
	yes := other.NewButtonBlockElement("yes", "q:1", other.NewTextBlockObject("plain_text", "Yes", false, false))
	section := other.NewSectionBlock(other.NewTextBlockObject("mrkdwn", "May I?", false, false), nil, nil)
	at, ts, err := api.PostMessage("D0ADA", other.MsgOptionText("May I?", false),
		other.MsgOptionBlocks(section, other.NewActionBlock("options", yes)))
	m := s.Messages()
	if err != nil || at != "D0ADA" || len(m) != 1 || m[0].Text != "May I?" || m[0].Buttons[0].Value != "q:1" {
		t.Fatalf("chat.postMessage: %q, %v, %+v", ts, err, m)
	}
	if _, _, _, err := api.UpdateMessage("D0ADA", ts, other.MsgOptionText("Ada said yes", false)); err != nil ||
		!s.Messages()[0].Edited {
		t.Errorf("chat.update: %v", err)
	}
	if err := api.AddReaction("eyes", other.NewRefToMessage("D0ADA", ts)); err != nil {
		t.Errorf("reactions.add: %v", err)
	}
	if _, err := api.UploadFile(other.UploadFileParameters{Reader: strings.NewReader("text"), FileSize: 4,
		Filename: "a.txt", Channel: "D0ADA", InitialComment: "look"}); err != nil {
		t.Errorf("the upload: %v", err)
	}
	if m := s.Messages(); len(m) != 2 || m[1].File == nil || m[1].Text != "look" {
		t.Errorf("the upload became %+v", m)
	}
	client := socketmode.New(api)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- client.RunContext(ctx) }()
	s.Say("D0ADA", "U0ADA", "hello", nil)
	s.Press("U0ADA", "D0ADA", ts, "q:1") // the edited message has no button any more
	for e := range client.Events {
		if e.Type != socketmode.EventTypeEventsAPI {
			continue
		}
		api, _ := e.Data.(slackevents.EventsAPIEvent)
		m, _ := api.InnerEvent.Data.(*slackevents.MessageEvent)
		if m == nil || m.Text != "hello" || m.ChannelType != "im" {
			t.Errorf("got %+v", e.Data)
		}
		if err := client.Ack(*e.Request); err != nil {
			t.Error(err)
		}
		break
	}
	if err := s.Wait(t.Context(), func() bool { return s.Envelopes()[0].Acknowledged }); err != nil {
		t.Error(err)
	}
	cancel()
	for { // an event without a receiver would block the client's end
		select {
		case <-client.Events:
		case <-done:
			return
		}
	}
}

// TestForeignServer sends to the server of another library, which decodes the blocks.
func TestForeignServer(t *testing.T) {
	s := othertest.NewTestServer()
	s.Start()
	defer s.Stop()
	app, err := slack.New(slack.Options{AppToken: slacktest.AppToken, BotToken: slacktest.BotToken,
		BaseURL: s.GetAPIURL()})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := app.Probe(t.Context()); err == nil && name == "" {
		t.Error("the bot has no name")
	}
	id, err := app.Send(t.Context(), channel.Outbound{Chat: "D0ADA", Text: "May I?",
		Buttons: []channel.Button{{Label: "Yes", Data: "q:1"}}})
	if err != nil || !strings.HasPrefix(id, "D0ADA:") {
		t.Errorf("got %q, %v", id, err)
	}
}
