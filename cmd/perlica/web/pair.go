package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// defaultRights are the rights of a browser if the user does not name any.
const defaultRights = "read,ask,approve"

func (a *app) pairCommand() *cobra.Command {
	var rights string
	cmd := &cobra.Command{
		Use: "pair", Annotations: frame.PersonOnly.Annotation(), Short: "Give a browser access",
		Long: `Show an address that gives one browser access. It works once, for two minutes and at most five
attempts, and replaces an earlier address. Open it in the browser. The browser and this
terminal then show a word each. If the words are the same, press y here to pair the browser;
any other key refuses it.

'perlica web' must be running, for example in another terminal.

` + access.HelpOfDevices,
		Example: "  perlica web pair\n  perlica web pair --rights read",
		Args:    frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rs, err := access.Parse(rights, "browser", access.OfDevices())
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			if err := a.canAsk(); err != nil {
				return err
			}
			return a.withDevices(cmd.Context(), func(d *device.Devices, p *project.Project) error {
				at, err := announcedAddress(p)
				if err != nil {
					return err
				}
				return a.pairBrowser(cmd.Context(), d, rs, at)
			})
		},
	}
	cmd.Flags().StringVar(&rights, "rights", defaultRights,
		"the browser's `rights`: some of "+access.OfDevices().Listed())
	return cmd
}

// serverLock returns the path of the lock file of the process that serves the page. The file contains the server's
// address.
func serverLock(p *project.Project) (string, error) {
	ws, name := p.Dirs.Own()
	paths, err := ws.Context(name)
	return filelock.Server(paths.Locks), err
}

// announceAddress tells other processes the address of this server until release is called. If another process
// serves the page already, the address of that process stays.
func announceAddress(p *project.Project, at string) (release func(), err error) {
	path, err := serverLock(p)
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Acquire(path)
	if errors.Is(err, filelock.ErrHeld) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	lock.Sign(at, time.Now())
	return lock.Release, nil
}

// announcedAddress returns the address at which a process serves.
func announcedAddress(p *project.Project) (string, error) {
	path, err := serverLock(p)
	if err != nil {
		return "", err
	}
	held, err := filelock.Held(path)
	if err != nil {
		return "", err
	}
	at := filelock.Holder(path).By
	if !held || at == "" {
		return "", frame.WithHint(errors.New("nothing serves the page now"),
			"start 'perlica web'; the first time it pairs a browser by itself")
	}
	return at, nil
}

// canAsk returns an error if this process has no terminal on which a person can press a key.
func (a *app) canAsk() error {
	tty, err := frame.OpenTTY()
	if err == nil {
		err = tty.Close()
	}
	if err != nil || !screen.IsTerminal(a.Stderr) {
		return frame.WithHint(frame.UsageErrorf(
			"pairing a browser needs a terminal for a key press, and there is no terminal"),
			"run 'perlica web pair' in a terminal of your own; a program gets 'perlica web token'")
	}
	return nil
}

// pairBrowser opens a pairing and shows the address for the browser. It then asks about the browser that opens the
// address.
func (a *app) pairBrowser(ctx context.Context, d *device.Devices, rights access.Rights, at string) error {
	by := frame.UserName(a.Getenv)
	p, err := d.OpenPairing(ctx, rights, by)
	if errors.Is(err, device.ErrTooMany) {
		return frame.WithHint(err, "see 'perlica web devices'; then 'perlica web revoke NAME'")
	}
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(at, "/") + "/#pair=" + p.Code
	a.Note("open this address in the browser within two minutes; it counts once:")
	if err := a.Say("%s", address); err != nil {
		return err
	}
	if reachable(at) {
		if err := a.Write(func(w io.Writer) error { return frame.WriteQR(w, address) }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithDeadline(ctx, p.Expires)
	defer cancel()
	asks, err := p.Wait(ctx)
	if err != nil {
		return notPaired(err)
	}
	a.printRequest(asks, rights)
	yes, err := a.Confirm(ctx, "Pair it?")
	if err != nil {
		return notPaired(err)
	}
	dev, err := p.Decide(ctx, yes, by)
	switch {
	case err != nil:
		return notPaired(err)
	case !yes:
		return frame.ExitFailure.With(errors.New("the browser was refused"))
	}
	return a.Say("%s (%s) is paired, with the rights %s", frame.OneLine(dev.Name), dev.ID, dev.Rights.Shown())
}

// notPaired returns an error that explains why no browser was paired.
func notPaired(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("two minutes have passed")
	}
	return frame.WithHint(fmt.Errorf("no browser was paired: %w", err), "'perlica web pair' shows another address")
}

// printRequest prints the known facts about a browser that asks for pairing.
func (a *app) printRequest(asks fact.WebPairingRequested, rights access.Rights) {
	s := a.Styles(a.Stderr)
	fmt.Fprintln(a.Stderr, s.Bold("A browser asks to be paired:"))
	for _, row := range [][2]string{
		{"name   ", asks.Name}, {"browser", asks.Browser}, {"address", asks.Address}, {"rights ", rights.Shown()},
		{"word   ", asks.Word + " (yours, if its page shows this word)"},
	} {
		fmt.Fprintln(a.Stderr, " ", s.Dim(row[0]), frame.OneLine(row[1]))
	}
}

// reachable reports whether another machine, such as a phone, can open the address.
func reachable(at string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}
