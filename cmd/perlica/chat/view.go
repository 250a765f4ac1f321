package chat

import (
	"fmt"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/kernel"
)

// chatView shows a turn of the chat, and shows what only its own terminal shows.
type chatView struct {
	*dialog.TurnView
	c     *chat
	alive bool // the agent was there in an earlier turn
}

func newChatView(c *chat, say *dialog.Printer) *chatView {
	return &chatView{TurnView: dialog.NewTurnView(c.a.App, say), c: c, alive: c.prompted && c.conv.Alive()}
}

// show is the kernel's Show.
func (v *chatView) show(n kernel.Notice) {
	switch n := n.(type) {
	case kernel.Started:
		v.started()
		v.Say.Show(n)
	case kernel.Updated:
		v.Update(n)
	case kernel.Asked:
		v.Flush()
		if n.Answerable {
			v.c.notify("a question: " + n.Title)
		}
		v.Say.Show(n)
	default:
		v.Flush()
		v.Say.Show(n)
	}
}

// started says how the agent came to know the earlier turns, when it had to.
func (v *chatView) started() {
	if v.alive || v.c.turns == 0 {
		return
	}
	switch _, how, _ := v.c.conv.Offers(); how {
	case "":
		v.Say.Note("the agent is told the earlier turns in a transcript")
	default:
		v.Say.Note("the agent continues the session by itself (session/" + how + ")")
	}
}

// finish ends the turn on the screen: the rest of the answer, what went wrong, what it took.
func (v *chatView) finish(res kernel.Result, err error) {
	v.End()
	v.Say.Finish(res, err)
	if text := v.Usage(res); err == nil && text != "" {
		fmt.Fprintln(v.A.Stderr, v.Say.Styles.Dim(text))
	}
}
