// Package web has the commands of the page and the HTTP API. They serve both, and pair browsers and programs.
package web

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// Command returns the command web with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	var f settings
	cmd := frame.Group("web", "Serve a page for browsers and an HTTP API for programs",
		`Serve a page and an HTTP API in the foreground. They show the running turns, the open questions
and the record of all your projects; --only FOLDER shows one project. The server accepts
connections from this machine only, unless --listen names another address.

Strangers see nothing. The first start shows an address that admits one browser. 'perlica web
pair' admits another browser, and 'perlica web token' makes a token for a program. Only you
decide about this access, and it holds for all projects. No project's file can change it.

After SIGTERM or Ctrl-C the server closes its streams and waits a while for running turns. A
second signal ends it at once. See docs/web.md and docs/http.md.`,
		a.pairCommand(), a.devicesCommand(), a.revokeCommand(), a.tokenCommand())
	addListenFlags(cmd, &f)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.serveUntilSignal(cmd.Context(), f) }
	a.AddSandboxFlag(cmd)
	cmd.Annotations = frame.PersonOnly.Annotation()
	return cmd
}

// withDevices opens the user's own log for writing and calls f with its devices.
func (a *app) withDevices(ctx context.Context, f func(d *device.Devices, p *project.Project) error) error {
	a.UserFlag = true
	return a.Writing(ctx, func(r *kernel.Runner, p *project.Project) error {
		d, err := device.Open(ctx, r.Log(), device.Options{})
		if err != nil {
			return err
		}
		return errors.Join(f(d, p), d.Close())
	})
}

func (a *app) devicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "devices", Annotations: frame.ReadOnly.Annotation(), Short: "List the browsers and programs with access",
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.readDevices(cmd.Context())
			if err = a.EmptyIfNoLog(err); err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			if len(list) == 0 {
				a.Note("nothing is paired; 'perlica web pair' lets a browser in, 'perlica web token' a program")
				return nil
			}
			g := frame.Grid{Head: []string{"NAME", "ID", "KIND", "RIGHTS", "PAIRED", "BROWSER"}}
			for _, d := range list {
				g.Add(frame.OneLine(d.Name), d.ID, string(d.Kind), d.Rights.Shown(), d.Paired.Local().Format(time.DateTime),
					frame.OneLine(d.Browser))
			}
			return a.Table(g)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// readDevices returns the paired devices. If there is no log, it makes none.
func (a *app) readDevices(ctx context.Context) (list []device.Device, err error) {
	a.UserFlag = true
	list = []device.Device{}
	err = a.Reading(ctx, func(log *store.Reader, _ *project.Project) (err error) {
		list, err = device.List(ctx, log)
		return err
	})
	return list, err
}

func (a *app) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Annotations: frame.PersonOnly.Annotation(), Short: "End the access of a browser or a program",
		Long: `End the access of a browser or a program. NAME is its name or its id in 'perlica web devices'.
Its open streams end within a second.`,
		Example: "  perlica web revoke phone",
		Args:    frame.Exactly("NAME"),
		ValidArgsFunction: frame.CompleteFirst(func(cmd *cobra.Command, _ []string, _ string) ([]string,
			cobra.ShellCompDirective) {
			list, err := a.readDevices(cmd.Context())
			var names []string
			for _, d := range list {
				names = append(names, frame.OneLine(d.Name)+"\t"+string(d.Kind))
			}
			return frame.Completed(names, err)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDevices(cmd.Context(), func(d *device.Devices, _ *project.Project) error {
				found, err := d.Revoke(cmd.Context(), args[0], frame.UserName(a.Getenv))
				var several *device.AmbiguousError
				switch {
				case errors.Is(err, device.ErrNoDevice):
					return frame.WithHint(fmt.Errorf("there is no device %q", args[0]), "see 'perlica web devices'")
				case errors.As(err, &several):
					return frame.WithHint(err, "name one by its id, as 'perlica web devices' shows it")
				case err != nil:
					return err
				}
				return a.Say("%s (%s) may not come in any more", frame.OneLine(found.Name), found.ID)
			})
		},
	}
}

func (a *app) tokenCommand() *cobra.Command {
	var rights string
	cmd := &cobra.Command{
		Use: "token NAME", Annotations: frame.PersonOnly.Annotation(), Short: "Make a token that gives a program access",
		Long: `Print a new token for the program NAME. Perlica keeps only the token's hash, so the token is
never shown again. The program sends it with each request as "Authorization: Bearer TOKEN".
'perlica web revoke NAME' ends the access.

` + access.HelpOfDevices,
		Example: "  perlica web token ci --rights ask\n  perlica web token dashboard --rights read",
		Args:    frame.Exactly("NAME"), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			rs, err := access.Parse(rights, "program", access.OfDevices())
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			return a.withDevices(cmd.Context(), func(d *device.Devices, _ *project.Project) error {
				token, _, err := d.NewToken(cmd.Context(), args[0], rs, frame.UserName(a.Getenv))
				switch {
				case errors.Is(err, device.ErrName):
					return frame.WithHint(frame.UsageErrorf("%q cannot be the name: %w", args[0], err), "see 'perlica web devices'")
				case errors.Is(err, device.ErrTooMany):
					return frame.WithHint(err, "see 'perlica web devices'; then 'perlica web revoke NAME'")
				case err != nil:
					return err
				}
				a.Note("it is not shown again:")
				return a.Say("%s", token)
			})
		},
	}
	cmd.Flags().StringVar(&rights, "rights", "ask",
		"the program's `rights`: some of "+access.OfDevices().Listed())
	return cmd
}
