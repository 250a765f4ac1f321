package ntfy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/perlica/perlica/service/channel"
)

// Check tries to read the topic with and without the token, and to answer without it. It publishes one message to the
// topic of the answers. No phone has subscribed to that topic.
func (c *Channel) Check(ctx context.Context) (list []channel.Finding) {
	add := func(name, next string, fails bool, format string, args ...any) {
		list = append(list, channel.Finding{Name: name, Detail: fmt.Sprintf(format, args...), Next: next, Fails: fails})
	}
	mine, err := c.readable(ctx, string(c.opt.Topic), true)
	switch {
	case err != nil:
		add("server", "check the address in service.ntfy.server", true, "%s is no ntfy server: %v", c.base, err)
		return list
	case !mine && c.opt.Token == "":
		add("token", "set service.ntfy.token_file", true, "the server wants an access token")
		return list
	case !mine:
		add("token", "if the token is of this server, 'ntfy access USER TOPIC rw' and 'ntfy access USER TOPIC-answers rw' "+
			"there; otherwise make one with 'ntfy token add'", true, "the server denies the token the topic")
		return list
	}
	add("token", "", false, "%s lets Perlica read the topic", c.base)
	switch open, err := c.readable(ctx, string(c.opt.Topic), false); {
	case err != nil:
		add("topic", "try again later", true, "%v", err)
	case open && c.opt.guessable():
		add("topic", "take a random name: openssl rand -hex 16", true, "everyone can read it, and its name can be guessed")
	case open:
		add("topic", "reserve the topic, or use a server with access control; never show the name to others", false,
			"everyone who learns its name can read the questions and answer them")
	default:
		add("topic", "", false, "only people with access can read it")
	}
	if ok, err := c.readable(ctx, c.answers, true); err != nil || !ok {
		add("answers", "'ntfy access USER TOPIC-answers rw' on the server", true, "Perlica cannot read them")
		return list
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	resp, err := c.do(ctx, http.MethodPut, "/"+c.answers+"?cache=no&firebase=no", strings.NewReader("check"), false)
	switch {
	case errors.Is(err, errDenied):
		add("answers", "'ntfy access everyone TOPIC-answers write-only' on the server", true,
			"a phone cannot send an answer without a token")
	case err != nil:
		add("answers", "try again later", true, "%v", err)
	default:
		_ = resp.Body.Close() // nothing was read
		add("answers", "", false, "a phone can send them")
	}
	return list
}
