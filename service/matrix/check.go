package matrix

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/perlica/perlica/service/channel"
)

// Check asks the server about the account.
func (c *Channel) Check(ctx context.Context) (list []channel.Finding) {
	add := func(name, next string, fails bool, format string, args ...any) {
		list = append(list, channel.Finding{Name: name, Detail: fmt.Sprintf(format, args...), Next: next, Fails: fails})
	}
	var versions struct {
		Versions []string `json:"versions"`
	}
	if err := c.call(ctx, http.MethodGet, "/_matrix/client/versions", nil, nil, &versions); err != nil {
		add("server", "the address is often that of the user ids with \"matrix.\" before it; "+
			"https://YOUR-DOMAIN/.well-known/matrix/client names it", true, "%s is no homeserver: %v", c.base, err)
		return list
	}
	if strings.HasPrefix(c.base, "http:") && !strings.Contains(c.base, "//127.0.0.1") &&
		!strings.Contains(c.base, "//localhost") {
		add("server", "use an https address", false, "%s gets the token without encryption", c.base)
	} else {
		add("server", "", false, "%s speaks %s", c.base, strings.Join(versions.Versions[max(0,
			len(versions.Versions)-1):], ""))
	}
	self, err := c.whoAmI(ctx)
	if err != nil {
		add("token", "log in as the bot's account and use the new token, see docs/channel-matrix.md", true, "%v", err)
		return list
	}
	add("token", "", false, "it belongs to %s", self)
	switch {
	case slices.Contains(c.opt.Allow, self):
		add("invitations", "make a separate account for the bot", true, "the token is that of an allowed person, "+
			"and messages of the token's account are ignored")
	case len(c.opt.Allow) == 0:
		add("invitations", "add your id to service.matrix.allow", false, "nobody may invite the bot except paired contacts")
	default:
		add("invitations", "", false, "followed if they come from %s", strings.Join(c.opt.Allow, ", "))
	}
	c.checkRooms(ctx, add)
	return list
}

// checkRooms reports the rooms of the account.
func (c *Channel) checkRooms(ctx context.Context, add func(name, next string, fails bool, format string, args ...any)) {
	var rooms struct {
		Joined []string `json:"joined_rooms"`
	}
	if err := c.call(ctx, http.MethodGet, "/_matrix/client/v3/joined_rooms", nil, nil, &rooms); err != nil {
		add("rooms", "try again later", true, "%v", err)
		return
	}
	readable := 0
	for _, room := range rooms.Joined {
		encrypted, err := c.isEncrypted(ctx, room)
		switch {
		case err != nil:
			add("rooms", "try again later", false, "%s: %v", room, err)
		case encrypted:
			add("rooms", "use a room without encryption", false, "%s is encrypted, so the bot ignores it", room)
		default:
			readable++
		}
	}
	if readable == 0 {
		add("rooms", "make a room without encryption and invite the bot", false, "the bot is in no room that it can read")
		return
	}
	add("rooms", "", false, "the bot reads %d", readable)
}
