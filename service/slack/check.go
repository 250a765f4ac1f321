package slack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/perlica/perlica/service/channel"
)

// scopes lists the scopes of the bot token, each with its use. Without a required scope the channel does not work.
var scopes = []struct {
	name, use string
	required  bool
}{
	{"chat:write", "to send messages", true},
	{"im:history", "to read direct messages", true},
	{"app_mentions:read", "to read messages in channels that mention the bot", false},
	{"commands", "for the command /perlica", false},
	{"files:read", "to receive files", false},
	{"files:write", "to send files", false},
	{"reactions:write", "to acknowledge a message by a reaction", false},
	{"users:read", "to show the names of people", false},
}

const settings = "https://api.slack.com/apps"

// Check examines both tokens, the scopes and Socket Mode. It opens a socket for a moment and acknowledges nothing.
func (c *Channel) Check(ctx context.Context) []channel.Finding {
	var self identity
	header, err := c.callHeader(ctx, c.opt.BotToken, "auth.test", nil, &self)
	if err != nil {
		return []channel.Finding{{Name: "bot token", Detail: err.Error(), Fails: true,
			Next: "copy the bot token from " + settings + ": your app, OAuth & Permissions"}}
	}
	list := []channel.Finding{{Name: "bot token", Detail: fmt.Sprintf("@%s in %s", self.Name, self.Team)}}
	list = append(list, missingScopes(header.Get("X-OAuth-Scopes"))...)
	at, hello, err := c.dial(ctx)
	if err != nil {
		return append(list, socketFinding(err))
	}
	_ = at.ws.CloseNow() // Slack repeats the messages that this socket got
	list = append(list, channel.Finding{Name: "app token", Detail: "Socket Mode works"})
	if hello.Connections > 1 {
		list = append(list, channel.Finding{Name: "connections",
			Detail: fmt.Sprintf("%d other programs are connected; each gets a part of the messages", hello.Connections-1),
			Next:   "end the others, or make a separate app for this bridge"})
	}
	if f, ok := c.sameApp(ctx, self, hello.Info.App); ok {
		list = append(list, f)
	}
	return append(list, channel.Finding{Name: "events", Detail: "Slack does not tell which events the app receives",
		Next: "write to the bot; if nothing arrives, subscribe to message.im and app_mention (Event Subscriptions), and " +
			"let people write to the app (App Home, Messages Tab)"})
}

// missingScopes compares the scopes of the bot token with the needed ones.
func missingScopes(header string) (list []channel.Finding) {
	if header == "" {
		return nil // a server between this machine and Slack removed the header
	}
	given := strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == ' ' })
	for _, s := range scopes {
		if !slices.Contains(given, s.name) {
			list = append(list, channel.Finding{Name: "scope", Detail: "the bot token lacks " + s.name + " " + s.use,
				Fails: s.required,
				Next:  "add the scope at " + settings + ": your app, OAuth & Permissions; then reinstall the app"})
		}
	}
	if list == nil {
		list = append(list, channel.Finding{Name: "scopes", Detail: "all there"})
	}
	return list
}

// socketFinding returns the finding of a socket that does not open.
func socketFinding(err error) channel.Finding {
	f := channel.Finding{Name: "app token", Detail: err.Error(), Fails: true,
		Next: "make an app-level token with the scope connections:write at " + settings + ": your app, Basic Information"}
	if errors.Is(err, errDisabled) || said(err, "socket_mode_disabled", "socket_mode_not_enabled") {
		f.Next = "switch on Socket Mode at " + settings + ": your app, Socket Mode"
	}
	return f
}

// sameApp compares the apps of the two tokens. ok is false if Slack does not name the app of the bot.
func (c *Channel) sameApp(ctx context.Context, self identity, app string) (f channel.Finding, ok bool) {
	var a struct {
		Bot struct {
			App string `json:"app_id"`
		} `json:"bot"`
	}
	err := c.call(ctx, "bots.info", url.Values{"bot": {self.Bot}}, &a)
	if err != nil || a.Bot.App == "" || app == "" {
		return f, false
	}
	if a.Bot.App != app {
		return channel.Finding{Name: "apps", Fails: true, Next: "take both tokens from one app",
			Detail: fmt.Sprintf("the bot token belongs to the app %s, and the app token to %s", a.Bot.App, app)}, true
	}
	return channel.Finding{Name: "apps", Detail: "both tokens belong to the app " + app}, true
}

// Probe returns the name of the bot.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	if err := c.learnIdentity(ctx); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("@%s in %s", c.self.Name, c.self.Team), nil
}
