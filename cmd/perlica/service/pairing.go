package service

import (
	"context"
	"time"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/service"
)

// invitations is how many codes, of five minutes each, a bridge shows by itself: a code that
// is always open could be guessed in the end.
const invitations = 12

// invitation is the code that a bridge shows as long as no contact is paired.
type invitation struct {
	a       *app
	log     *eventlog.Log
	records *service.Records
	screen  *serviceScreen
	code    string
	left    int
	silent  bool // it was said that no code is shown
}

func newInvitation(a *app, log *eventlog.Log, records *service.Records, screen *serviceScreen) *invitation {
	i := &invitation{a: a, log: log, records: records, screen: screen, left: invitations}
	// A reader of the system's journal is not meant to pair.
	if !term.IsTerminal(a.Stderr) && a.Getenv("JOURNAL_STREAM") != "" {
		i.left = 0
	}
	return i
}

// look returns the code that is to be shown, if there is one, and prints it where there is no
// view. A code that ran out, or was guessed at too often, is replaced.
func (i *invitation) look(ctx context.Context, paired bool) string {
	if paired {
		i.code = ""
		return ""
	}
	now := time.Now()
	open, mine, err := i.records.Pairing(ctx, i.code, now)
	if err != nil {
		return "" // the bridge says it
	}
	if mine {
		return i.code
	}
	i.code = ""
	switch {
	case open: // somebody has asked for one, which must not be replaced
	case i.left > 0:
		i.left--
		if i.code, err = service.OpenPairing(ctx, i.log, service.DefaultRights(), cli.UserName(i.a.Getenv), now); err != nil {
			return ""
		}
		i.screen.log.Info("no one is paired: send this code to a channel within five minutes", "code", i.code)
	case !i.silent:
		i.silent = true
		i.screen.log.Info("no one is paired: 'perlica service pair' shows a code")
	}
	return i.code
}
