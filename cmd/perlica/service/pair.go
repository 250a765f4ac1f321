package service

import (
	"context"
	"errors"
	"time"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/access"
	"github.com/spf13/cobra"
)

func (a *app) servicePairCommand() *cobra.Command {
	var rights string
	cmd := &cobra.Command{
		Use: "pair [CONTACT]", Annotations: frame.PersonOnly.Annotation(), Short: "Show a code that pairs a contact",
		Long: `Show a code of six digits. Send it from a phone to a channel of the bridge within five minutes:
this pairs the phone's owner as a contact. The code works once, and replaces an earlier code.

With CONTACT, confirm a contact that came with a copied log. Such a contact may not use the
bridge before you have confirmed it. It keeps its recorded rights.

` + access.HelpOfPeople,
		Example: "  perlica service pair\n  perlica service pair --rights ask,approve,admin",
		Args:    frame.Between(0, "CONTACT"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if cmd.Flags().Changed("rights") {
					return frame.UsageErrorf("a contact that is confirmed has the rights on record: --rights is for a new one")
				}
				return a.confirmContact(cmd.Context(), args[0])
			}
			rs, err := access.Parse(rights, "contact", access.OfPeople())
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			return a.Writing(cmd.Context(), func(r *kernel.Runner, p *project.Project) error {
				code, err := service.OpenPairing(cmd.Context(), r.Log(), rs, frame.UserName(a.Getenv), time.Now())
				if err != nil {
					return err
				}
				if held, err := service.Holder(p.Workspace.Service().Lock); err == nil && held == nil {
					a.Note("no bridge runs here: start one with 'perlica service'")
				}
				a.Note("send this to a channel of the bridge within five minutes:")
				if err := a.Say("%s", code); err != nil {
					return err
				}
				return a.showLinks(cmd.Context(), p, code)
			})
		},
	}
	cmd.Flags().StringVar(&rights, "rights", "ask,approve",
		"the contact's `rights`: some of "+access.OfPeople().Listed())
	return cmd
}

func (a *app) serviceRightsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rights CONTACT RIGHTS", Annotations: frame.PersonOnly.Annotation(), Short: "Change the rights of a contact",
		Long: `Replace the rights of a paired contact. The new rights count from the contact's next message
or answer on. The contact keeps its session.

` + access.HelpOfPeople,
		Example: "  perlica service rights local:alice ask,approve,admin",
		Args:    frame.Exactly("CONTACT", "RIGHTS"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			rights, err := access.Parse(args[1], "contact", access.OfPeople())
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			return a.withRecords(cmd.Context(), func(records *service.Records, _ *store.Reader, _ *project.Project) error {
				c, err := findContact(cmd.Context(), args[0], records.Contacts)
				if err != nil {
					return err
				}
				return a.Writing(cmd.Context(), func(r *kernel.Runner, _ *project.Project) error {
					if err := records.Grant(cmd.Context(), r.Log(), c, rights, frame.UserName(a.Getenv)); err != nil {
						return err
					}
					return a.Say("%s has the rights %s", frame.OneLine(c.Label()), rights.Shown())
				})
			})
		},
	}
}

// linkTime is the time that a platform may take to return the address of its bot.
const linkTime = 10 * time.Second

// linkers lists the channels with an address that sends a pairing code to the bridge. Opening them does not listen.
var linkers = []string{"ntfy", "telegram"}

// showLinks shows the address of each served channel that has one. On a terminal it adds a QR code.
func (a *app) showLinks(ctx context.Context, p *project.Project, code string) error {
	for _, name := range linkers {
		if !isServed(p, name) {
			continue
		}
		link, err := a.pairingLink(ctx, p, name, code)
		if err != nil { // Without the address, the user can type the code.
			a.Note("no address for the code on " + name + ": " + frame.OneLine(err.Error()))
			continue
		}
		a.Note("or open this on the phone: " + link)
		if !screen.IsTerminal(a.Stderr) {
			continue
		}
		if err := frame.WriteQR(a.Stderr, link); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) pairingLink(ctx context.Context, p *project.Project, name, code string) (string, error) {
	open, err := channels[name](a, p, nil)
	if err != nil {
		return "", err
	}
	ch, err := open()
	if err != nil {
		return "", err
	}
	linker, ok := ch.(interface {
		PairingLink(ctx context.Context, code string) (string, error)
	})
	if !ok {
		return "", errors.New("it has none")
	}
	ctx, cancel := context.WithTimeout(ctx, linkTime)
	defer cancel()
	return linker.PairingLink(ctx, code)
}
