package discord

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/perlica/perlica/service/channel"
)

type application struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Flags int    `json:"flags"`
	// Endpoint is an address to which Discord sends the presses of buttons instead of the gateway.
	Endpoint string `json:"interactions_endpoint_url"`
}

type guild struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Right string `json:"permissions"` // a number
}

// needed has the permissions that the bot needs in a server, by their bits.
var needed = []struct {
	bit  uint64
	name string
}{
	{1 << 10, "View Channels"}, {1 << 11, "Send Messages"}, {1 << 38, "Send Messages in Threads"},
	{1 << 15, "Attach Files"}, {1 << 16, "Read Message History"}, {1 << 6, "Add Reactions"},
}

// administrator is the permission that includes all others.
const administrator = 1 << 3

func neededBits() (bits uint64) {
	for _, p := range needed {
		bits |= p.bit
	}
	return bits
}

// Probe asks Discord for the bot's name.
func (c *Channel) Probe(ctx context.Context) (string, error) {
	var me user
	if err := c.call(ctx, getSelf, body{}, &me); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (%s)", me.label(), me.ID), nil
}

// Check compares the settings of the application and the bot's permissions with the needs of the channel.
func (c *Channel) Check(ctx context.Context) (list []channel.Finding) {
	name, err := c.Probe(ctx)
	if err != nil {
		return []channel.Finding{{Name: "token", Detail: err.Error(), Fails: true,
			Next: "copy a new token from the page \"Bot\" of your application at https://discord.com/developers/applications"}}
	}
	list = append(list, channel.Finding{Name: "token", Detail: "it is the token of " + name})
	var app application
	if err := c.call(ctx, getApplication, body{}, &app); err != nil {
		return append(list, unasked("application", err))
	}
	list = append(list, checkIntent(app), checkEndpoint(app))
	var start sessions
	if err := c.call(ctx, getGateway, body{}, &start); err != nil {
		list = append(list, unasked("gateway", err))
	} else if start.Starts.Remaining <= 0 {
		list = append(list, channel.Finding{Name: "gateway", Detail: "the bot has begun too many sessions today",
			Next: "wait until tomorrow, and find the program that starts again and again", Fails: true})
	}
	var in []guild
	if err := c.call(ctx, getGuilds, body{}, &in); err != nil {
		return append(list, unasked("servers", err))
	}
	if len(in) == 0 {
		return append(list, channel.Finding{Name: "servers", Detail: "the bot is in no server, so nobody can write to it",
			Next: "open " + invitation(app.ID) + " and add it to a server of yours", Fails: true})
	}
	for _, g := range in {
		list = append(list, checkGuild(app, g))
	}
	return list
}

func unasked(name string, err error) channel.Finding {
	return channel.Finding{Name: name, Detail: err.Error(), Next: "try it again later", Fails: true}
}

func checkIntent(app application) channel.Finding {
	if app.Flags&contentFlags != 0 {
		return channel.Finding{Name: "intents", Detail: "Message Content Intent is on"}
	}
	return channel.Finding{Name: "intents", Detail: "Message Content Intent is off: in a thread, the bot cannot read a " +
		"message that does not mention it", Next: "switch it on at https://discord.com/developers/applications/" + app.ID +
		"/bot, then start the bridge again"}
}

func checkEndpoint(app application) channel.Finding {
	if app.Endpoint == "" {
		return channel.Finding{Name: "buttons", Detail: "their presses come over the gateway"}
	}
	return channel.Finding{Name: "buttons", Detail: "Discord sends their presses to another address", Fails: true,
		Next: "remove the \"Interactions Endpoint URL\" at https://discord.com/developers/applications/" + app.ID +
			"/information"}
}

func checkGuild(app application, g guild) channel.Finding {
	has, _ := strconv.ParseUint(g.Right, 10, 64) // 0 if it is not a number: then all are missing
	var missing []string
	for _, p := range needed {
		if has&(p.bit|administrator) == 0 {
			missing = append(missing, p.name)
		}
	}
	name := "server " + g.Name
	if len(missing) == 0 {
		return channel.Finding{Name: name, Detail: "the bot has all permissions that it needs"}
	}
	return channel.Finding{Name: name, Detail: "the bot lacks the permissions " + strings.Join(missing, ", "),
		Next: "open " + invitation(app.ID) + " and choose this server, or change the bot's role"}
}

// invitation returns the page at which a person adds the bot to a server.
func invitation(app string) string {
	return fmt.Sprintf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot&permissions=%d", app, neededBits())
}
