package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/local"
)

// withRecords opens the records of the bridge without starting the bridge.
func (a *app) withRecords(ctx context.Context, f func(*service.Records, *store.Reader, *project.Project) error) error {
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) error {
		paths, err := p.Workspace.EnsureService()
		if err != nil {
			return err
		}
		r, remove, err := project.OpenView(paths.Bridge, func(path string) (*service.Records, error) {
			return service.OpenRecords(ctx, log, path, p.Vouchers())
		})
		if err != nil {
			return err
		}
		defer remove()
		return errors.Join(f(r, log, p), r.Close())
	})
}

// serviceReport is the status of the bridge as --json prints it.
type serviceReport struct {
	service.Status
	Holder    *service.HeldError `json:"bridge"` // null if no bridge is running
	Questions int                `json:"questions"`
	Projects  []servedProject    `json:"projects,omitempty"` // the other projects that the bridge's bot serves
}

func (a *app) serviceStatusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Annotations: frame.ReadOnly.Annotation(), Short: "Show the state of the bridge", Args: frame.Exactly(),
		ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRecords(cmd.Context(), func(r *service.Records, log *store.Reader, p *project.Project) error {
				return a.serviceStatus(cmd.Context(), r, log, p, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) serviceStatus(ctx context.Context, r *service.Records, log *store.Reader, p *project.Project,
	asJSON bool) error {
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	rep := serviceReport{Status: s}
	if rep.Holder, err = service.Holder(p.Workspace.Service().Lock); err != nil {
		return err
	}
	rep.Running = rep.Holder != nil
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return err
	}
	open, err := record.PendingQuestions(ctx, log, paths.Locks)
	if err != nil {
		return err
	}
	rep.Questions = len(open)
	if rep.Projects, err = a.listProjects(ctx, p); err != nil {
		return err
	}
	return a.Show(asJSON, rep, func(w io.Writer, _ screen.Styles) error {
		if rep.Holder != nil {
			fmt.Fprintf(w, "running: process %d, since %s\n", rep.Holder.PID, rep.Holder.Since.Local().Format(time.DateTime))
		} else {
			fmt.Fprintln(w, "not running")
		}
		writeServed(w, rep)
		for _, c := range rep.Unconfirmed {
			fmt.Fprintln(w, unconfirmed(c))
		}
		for _, s := range a.channelSetups(p) {
			if s.Err != nil {
				fmt.Fprintf(w, "channel %s: not set up: %s\n", screen.Sanitize(s.Name), frame.OneLine(s.Err.Error()))
			}
		}
		perhaps := ""
		if rep.Unknown > 0 {
			perhaps = fmt.Sprintf(" (of which %d may have been sent before)", rep.Unknown)
		}
		contacts := frame.Count(len(rep.Contacts), "contact")
		if n := len(rep.Unconfirmed); n > 0 {
			contacts += fmt.Sprintf(" and %d on record only", n)
		}
		fmt.Fprintf(w, "%s, %s without an outcome, %s, %d to be sent%s\n", contacts,
			frame.Count(rep.Waiting, "message"), frame.Count(rep.Questions, "open question"), rep.Unsent, perhaps)
		if rep.LastWhy != "" {
			fmt.Fprintf(w, "sending failed: %s\n", screen.Sanitize(rep.LastWhy))
		}
		if rep.Failed > 0 {
			fmt.Fprintf(w, "%s could not be sent and %s given up\n", frame.Count(rep.Failed, "message"),
				map[bool]string{true: "was", false: "were"}[rep.Failed == 1])
		}
		_, err := fmt.Fprintf(w, "strangers ignored: %d\n", rep.Ignored)
		return err
	})
}

// writeServed prints the state of the projects and the channels.
func writeServed(w io.Writer, rep serviceReport) {
	for _, p := range rep.Projects {
		fmt.Fprintf(w, "project %s: %s\n", frame.OneLine(p.Name), frame.OneLine(p.State))
	}
	for _, c := range rep.Channels {
		state := "well"
		if c.Error != "" {
			state = c.Error
		}
		if rep.Holder != nil && c.Served || c.Error != "" {
			fmt.Fprintf(w, "channel %s: %s\n", screen.Sanitize(c.Name), screen.Sanitize(state))
		}
	}
}

func (a *app) serviceContactsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "contacts", Annotations: frame.ReadOnly.Annotation(), Short: "List the paired contacts", Args: frame.Exactly(),
		ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, others := []service.Contact{}, []service.Contact{}
			err := a.withRecords(cmd.Context(), func(r *service.Records, _ *store.Reader, _ *project.Project) error {
				found, err := r.Contacts(cmd.Context())
				list = append(list, found...)
				if err == nil {
					others, err = r.Unconfirmed(cmd.Context())
				}
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			for _, c := range others {
				a.Note(unconfirmed(c))
			}
			if len(list) == 0 {
				a.Note("no one is paired; 'perlica service pair' shows a code")
				return nil
			}
			g := frame.Grid{Head: []string{"CONTACT", "RIGHTS", "PAIRED", "NAME"}}
			for _, c := range list {
				g.Add(contactRef(c, list), c.Rights.Shown(), c.Paired.Local().Format(time.DateTime), c.Name)
			}
			return a.Table(g)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (a *app) serviceUnpairCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unpair CONTACT", Annotations: frame.PersonOnly.Annotation(), Short: "Take a contact's rights away",
		Example: "  perlica service unpair local:alice",
		Args:    frame.Exactly("CONTACT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRecords(cmd.Context(), func(records *service.Records, _ *store.Reader, _ *project.Project) error {
				found, err := findContact(cmd.Context(), args[0], records.Contacts, records.Unconfirmed)
				if err != nil {
					return err
				}
				return a.Writing(cmd.Context(), func(r *kernel.Runner, _ *project.Project) error {
					if err := records.Unpair(cmd.Context(), r.Log(), found, frame.UserName(a.Getenv)); err != nil {
						return err
					}
					return a.Say("%s is not paired any more", frame.OneLine(found.Label()))
				})
			})
		},
	}
}

// unconfirmed returns a note about a contact without rights. It tells how to confirm the contact.
func unconfirmed(c service.Contact) string {
	return frame.OneLine(fmt.Sprintf("%s is on record, but not paired by you here, and has no rights: %s", c.Label(),
		service.Confirming(c)))
}

// contactRef returns the shortest text by which findContact finds a contact in a list.
func contactRef(c service.Contact, list []service.Contact) string {
	same := 0
	for _, o := range list {
		if o.Channel == local.Name && (o.Name == c.Name || o.ID == c.Name) {
			same++
		}
	}
	if c.Channel == local.Name && same == 1 && c.Name != "" {
		return local.Name + ":" + c.Name
	}
	return c.Channel + ":" + c.ID
}

// findContact finds the contact that ref names as CHANNEL:ID. The first list with this contact counts. For a phone
// of the channel local, the phone's name is enough if it is unique.
func findContact(ctx context.Context, ref string,
	lists ...func(context.Context) ([]service.Contact, error)) (service.Contact, error) {
	for _, read := range lists {
		list, err := read(ctx)
		if err != nil {
			return service.Contact{}, err
		}
		var called []service.Contact
		for _, c := range list {
			if c.Channel+":"+c.ID == ref {
				return c, nil
			}
			if c.Channel == local.Name && local.Name+":"+c.Name == ref {
				called = append(called, c)
			}
		}
		switch len(called) {
		case 0:
		case 1:
			return called[0], nil
		default:
			return service.Contact{}, frame.WithHint(fmt.Errorf("%d contacts call themselves %q", len(called), called[0].Name),
				"name one as 'perlica service contacts' shows it")
		}
	}
	return service.Contact{}, frame.WithHint(fmt.Errorf("there is no contact %q", ref), "see 'perlica service contacts'")
}

// confirmContact gives rights to a contact that the record names, but that was not confirmed here.
func (a *app) confirmContact(ctx context.Context, ref string) error {
	return a.withRecords(ctx, func(records *service.Records, _ *store.Reader, _ *project.Project) error {
		c, err := findContact(ctx, ref, records.Unconfirmed)
		if err != nil {
			if _, cerr := findContact(ctx, ref, records.Contacts); cerr == nil {
				return a.Say("%s is paired already", ref)
			}
			return err
		}
		if err := records.Confirm(ctx, c); err != nil {
			return frame.WithHint(err, "%s", service.Confirming(c))
		}
		return a.Say("%s is paired, with the rights %s", frame.OneLine(c.Label()), c.Rights.Shown())
	})
}

// serviceLogsCommand changes the command log tail into a command that shows the events of the bridge.
func serviceLogsCommand(cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Short = "logs", "Show the bridge's events, as 'perlica log tail' does"
	cmd.Long, cmd.Example = "", "  perlica service logs -f"
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("type") {
			if err := cmd.Flags().Set("type", "service.*"); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	return cmd
}

// invitations is the largest number of five-minute codes that a bridge shows without a request. The number is
// limited, because somebody could guess the code if one were always open.
const invitations = 12

// invitation shows a code for pairing while no contact is paired.
type invitation struct {
	a       *app
	log     *eventlog.Log
	records *service.Records
	view    *serviceView
	code    string
	left    int
	said    string // text that was printed last
}

func newInvitation(a *app, log *eventlog.Log, records *service.Records, view *serviceView) *invitation {
	i := &invitation{a: a, log: log, records: records, view: view, left: invitations}
	// The journal's readers must not be able to pair, so no code is printed there.
	if !screen.IsTerminal(a.Stderr) && a.Getenv("JOURNAL_STREAM") != "" {
		i.left = 0
	}
	return i
}

// nextText returns the text about pairing for the view. Without a view it also prints the text. While no contact is
// paired, the text has a code. Once a contact is paired, or after the last of the invitations, the text tells how to
// get a code. A new code replaces a code that has expired or had too many wrong guesses.
func (i *invitation) nextText(ctx context.Context, paired bool) string {
	now := time.Now()
	open, mine, err := i.records.Pairing(ctx, i.code, now)
	switch {
	case err != nil:
		return "" // The bridge reports the error.
	case paired:
		i.code = ""
		return i.printChanged("'perlica service pair' shows a code for one more contact")
	case mine:
		return i.inviteText()
	case open: // A person or an earlier bridge has opened this code, so it must not be replaced.
		i.code = ""
		return i.printChanged("an earlier code still counts; 'perlica service pair' makes another")
	case i.left == 0:
		i.code = ""
		return i.printChanged("no one is paired: 'perlica service pair' shows a code")
	}
	i.left--
	if i.code, err = service.OpenPairing(ctx, i.log, service.DefaultRights(), frame.UserName(i.a.Getenv),
		now); err != nil {
		return ""
	}
	i.view.log.Info("no one is paired: send this code to a channel within five minutes", "code", i.code)
	return i.inviteText()
}

// inviteText tells how to pair with the current code.
func (i *invitation) inviteText() string {
	return fmt.Sprintf("send %s %s to a channel; 'perlica phone' is the phone of local", i.code[:3], i.code[3:])
}

// printChanged prints a text if it differs from the last text. It returns the text.
func (i *invitation) printChanged(text string) string {
	if i.said != text {
		i.said = text
		i.view.log.Info(text)
	}
	return text
}
