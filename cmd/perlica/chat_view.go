package main

import (
	"fmt"

	"github.com/perlica/perlica/kernel"
)

// chatView shows a turn of the chat, and tells what only its own terminal is told.
type chatView struct {
	*turnView
	c     *chat
	alive bool // the agent was there in an earlier turn
}

func newChatView(c *chat, say *printer) *chatView {
	return &chatView{turnView: newTurnView(c.a, say), c: c, alive: c.prompted && c.conv.Alive()}
}

// show is the kernel's Show.
func (v *chatView) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Started:
		v.started()
		v.say.show(n)
	case kernel.Updated:
		v.update(n)
	case kernel.Asked:
		v.flush()
		if n.Answerable {
			v.c.notify("a question: " + n.Title)
		}
		v.say.show(n)
	default:
		v.flush()
		v.say.show(n)
	}
}

// started says how the agent came to know the earlier turns, when it had to.
func (v *chatView) started() {
	if v.alive || v.c.turns == 0 {
		return
	}
	switch _, how, _ := v.c.conv.Offers(); how {
	case "":
		v.say.note("the agent is told the earlier turns in a transcript")
	default:
		v.say.note("the agent continues the session by itself (session/" + how + ")")
	}
}

// finish ends the turn on the screen: the rest of the answer, what went wrong, what it took.
func (v *chatView) finish(res kernel.Result, err error) {
	v.end()
	v.say.finish(res, err)
	if text := v.usage(res); err == nil && text != "" {
		fmt.Fprintln(v.a.stderr, v.say.styles.Dim(text))
	}
}
