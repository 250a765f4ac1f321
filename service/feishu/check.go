package feishu

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/perlica/perlica/service/channel"
)

// scopes lists the scopes that the app needs, each with its use. If a line has several names, one of them is enough.
// Without a required scope the channel does not work.
var scopes = []struct {
	names    []string
	use      string
	required bool
}{
	{[]string{"im:message", "im:message:send_as_bot"}, "to send messages", true},
	{[]string{"im:message.p2p_msg:readonly", "im:message.p2p_msg"}, "to receive private messages", true},
	{[]string{"im:message.group_at_msg:readonly", "im:message.group_at_msg"},
		"to receive messages in groups that mention the bot", false},
	{[]string{"im:resource"}, "to send and receive files", false},
	{[]string{"im:message", "im:message.reactions:write_only"}, "to acknowledge a message by a reaction", false},
	{[]string{"contact:user.base:readonly"}, "to show the names of people", false},
}

// enabled is the status of a bot that people can use.
const enabled = 2

// Check examines the secret, the bot, the scopes, the long connection and the subscriptions. It opens a connection for
// a moment and acknowledges nothing.
func (c *Channel) Check(ctx context.Context) (list []channel.Finding) {
	if _, err := c.accessToken(ctx); err != nil {
		f := channel.Finding{Name: "app secret", Detail: err.Error(), Fails: true,
			Next: "copy the App ID and the App Secret from " + c.settings("baseinfo")}
		if !said(err, wrongSecret...) {
			f.Name, f.Next = "server", "check the network, and service.feishu.base_url: Feishu and Lark have different ones"
		}
		return append(list, f)
	}
	list = append(list, channel.Finding{Name: "app secret", Detail: "it belongs to " + c.opt.AppID})
	self, err := c.askBot(ctx)
	if err != nil {
		return append(list, channel.Finding{Name: "bot", Detail: err.Error(), Fails: true,
			Next: "add the capability Bot at " + c.settings("bot") + ", and publish a version of the app"})
	}
	if self.Status != enabled {
		list = append(list, channel.Finding{Name: "bot", Fails: true,
			Detail: fmt.Sprintf("%s is not enabled in your organisation (status %d)", self.Name, self.Status),
			Next:   "publish a version of the app at " + c.settings("version") + ", and let an administrator approve it"})
	} else {
		list = append(list, channel.Finding{Name: "bot", Detail: self.Name})
	}
	list = append(list, c.checkScopes(ctx)...)
	at, err := c.dial(ctx)
	if err != nil {
		f := channel.Finding{Name: "connection", Detail: err.Error(), Fails: true,
			Next: "check the network, and whether too many programs are connected (50 are allowed)"}
		if said(err, wrongSecret...) {
			f.Next = "publish a version of the app at " + c.settings("version") + "; only a published app may connect"
		}
		return append(list, f)
	}
	_ = at.ws.CloseNow() // Feishu repeats the messages that this connection got
	list = append(list, channel.Finding{Name: "connection", Detail: "the long connection works"})
	return append(list, c.checkEvents(ctx)...)
}

// settings returns the address of a page with settings of the app.
func (c *Channel) settings(page string) string { return c.base + "/app/" + c.opt.AppID + "/" + page }

// checkScopes compares the granted scopes with the needed ones.
func (c *Channel) checkScopes(ctx context.Context) (list []channel.Finding) {
	var a struct {
		Scopes []struct {
			Name   string `json:"scope_name"`
			Status int    `json:"grant_status"` // 1 means granted
		} `json:"scopes"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/open-apis/application/v6/scopes"}, &a)
	if err != nil {
		return []channel.Finding{{Name: "scopes", Detail: err.Error(), Next: "publish a version of the app at " +
			c.settings("version")}}
	}
	for _, s := range scopes {
		granted := false
		for _, has := range a.Scopes {
			granted = granted || has.Status == 1 && slices.Contains(s.names, has.Name)
		}
		if !granted {
			list = append(list, channel.Finding{Name: "scope", Fails: s.required,
				Detail: "the app lacks " + strings.Join(s.names, " or ") + " " + s.use,
				Next:   "add the scope at " + c.settings("auth") + "; then publish a version of the app"})
		}
	}
	if list == nil {
		list = []channel.Finding{{Name: "scopes", Detail: "all there"}}
	}
	return list
}

// checkEvents examines the subscriptions, if the app may see its own settings.
func (c *Channel) checkEvents(ctx context.Context) (list []channel.Finding) {
	var a struct {
		App struct {
			Event struct {
				Mode   string   `json:"subscription_type"`
				Events []string `json:"subscribed_events"`
			} `json:"event"`
			Callback struct {
				Mode      string   `json:"callback_type"`
				Callbacks []string `json:"subscribed_callbacks"`
			} `json:"callback"`
			CallbackInfo struct {
				Mode      string   `json:"callback_type"`
				Callbacks []string `json:"subscribed_callbacks"`
			} `json:"callback_info"`
		} `json:"app"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/open-apis/application/v6/applications/" + c.opt.AppID,
		query: url.Values{"lang": {"en_us"}}}, &a)
	if err != nil || a.App.Event.Mode == "" {
		return []channel.Finding{{Name: "events", Detail: "Feishu does not tell which events the app receives",
			Next: "write to the bot; if nothing arrives, choose the long connection at " + c.settings("event") +
				" and add im.message.receive_v1; on the tab of callbacks add card.action.trigger. With the scope " +
				"application:application:self_manage this command can look there"}}
	}
	for _, s := range []struct {
		name, mode, wanted string
		has                []string
	}{
		{"events", a.App.Event.Mode, "im.message.receive_v1", a.App.Event.Events},
		{"callbacks", a.App.Callback.Mode + a.App.CallbackInfo.Mode, "card.action.trigger",
			append(a.App.Callback.Callbacks, a.App.CallbackInfo.Callbacks...)},
	} {
		f := channel.Finding{Name: s.name, Detail: s.wanted + " over the long connection"}
		if !strings.Contains(s.mode, "websocket") {
			f.Detail, f.Fails = fmt.Sprintf("they are sent by %q instead of the long connection", s.mode), true
			f.Next = "choose the long connection at " + c.settings("event") + "; then publish a version of the app"
		} else if !slices.Contains(s.has, s.wanted) {
			f.Detail, f.Fails = "the app does not receive "+s.wanted, true
			f.Next = "add it at " + c.settings("event") + "; then publish a version of the app"
		}
		list = append(list, f)
	}
	return list
}

// Probe returns the name of the bot.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	self, err := c.askBot(ctx)
	return self.Name, err
}
