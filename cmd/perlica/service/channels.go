package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/imessage"
	"github.com/perlica/perlica/service/local"
)

// isServed reports whether the bridge serves a channel, according to the configuration.
func isServed(p *project.Project, name string) bool {
	served, said := p.Config.Service.Channels[name]
	return served || !said && name == local.Name
}

var errNoChannel = errors.New("no channel is enabled")

// servedChannels returns the names of the channels that the configuration enables.
func servedChannels(p *project.Project) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(p.Config.Service.Channels)) {
		if channels[name] == nil {
			return nil, frame.ExitUsage.With(frame.WithHint(fmt.Errorf("service.channels: there is no channel %q", name),
				"see 'perlica service channel list'"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		if isServed(p, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, frame.WithHint(frame.ExitUsage.With(errNoChannel), "'perlica service channel enable local'")
	}
	return names, nil
}

// leftOut is the note about the channel imessage on systems other than macOS.
const leftOut = "left out: it exists on macOS only"

// openChannels opens the configured channels. The result "left" lists the channels that this system cannot have. The
// function paired reports whether a contact is paired. It works only after the bridge was opened.
func (a *app) openChannels(p *project.Project, paired func(channel, contact string) bool) (list []channel.Channel,
	left []service.ChannelStatus, done func() error, err error) {
	done = func() error {
		var err error
		for _, c := range list {
			if closer, ok := c.(io.Closer); ok {
				err = errors.Join(err, closer.Close())
			}
		}
		return err
	}
	names, err := servedChannels(p)
	if err != nil {
		return nil, nil, done, err
	}
	var opens []openChannel
	for _, name := range names { // All channels are checked before the first one listens.
		open, err := channels[name](a, p, func(contact string) bool { return paired(name, contact) })
		if errors.Is(err, imessage.ErrSystem) && len(names) > 1 {
			left = append(left, service.ChannelStatus{Name: name, Error: leftOut})
			continue
		}
		if err != nil {
			return nil, nil, done, frame.ExitUsage.With(fmt.Errorf("channel %s: %w", name, err))
		}
		opens = append(opens, func() (channel.Channel, error) {
			c, err := open()
			if err != nil {
				err = fmt.Errorf("channel %s: %w", name, err)
			}
			return c, err
		})
	}
	for _, open := range opens {
		c, err := open()
		if err != nil {
			return nil, nil, done, errors.Join(err, done())
		}
		list = append(list, c)
	}
	return list, left, done, nil
}

// completeChannel completes the name of a channel.
func completeChannel() cobra.CompletionFunc {
	return frame.CompleteFirst(func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return slices.Sorted(maps.Keys(channels)), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *app) serviceChannelCommand() *cobra.Command {
	names := completeChannel()
	list := &cobra.Command{
		Use: "list", Annotations: frame.ReadOnly.Annotation(), Aliases: []string{"ls"}, Short: "List the channels",
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.Locate(nil)
			if err != nil {
				return err
			}
			g := frame.Grid{Head: []string{"CHANNEL", "ENABLED", "SET UP"}}
			for _, name := range slices.Sorted(maps.Keys(channels)) {
				state := "yes"
				if _, err := channels[name](a, p, nil); err != nil {
					state = "no: " + err.Error()
				}
				g.Add(name, map[bool]string{true: "yes", false: "no"}[isServed(p, name)], state)
			}
			return a.Table(g)
		},
	}
	toggle := func(word string, on bool) *cobra.Command {
		return &cobra.Command{
			Use: word + " NAME", Annotations: frame.PersonOnly.Annotation(), Short: strings.ToUpper(word[:1]) + word[1:] +
				" a channel, in the project's configuration",
			Args: frame.Exactly("NAME"), ValidArgsFunction: names,
			RunE: func(_ *cobra.Command, args []string) error { return a.toggleChannel(args[0], on) },
		}
	}
	test := &cobra.Command{
		Use: "test NAME", Annotations: frame.ReadOnly.Annotation(), Short: "Test if a channel can be opened and read",
		Long: `Open a channel, ask its platform for the bot's name, and read messages for a moment. The
messages stay there, and the bridge reads them again. While a bridge runs, use 'perlica service
status' instead.`,
		Args: frame.Exactly("NAME"), ValidArgsFunction: names,
		RunE: func(cmd *cobra.Command, args []string) error { return a.testChannel(cmd.Context(), args[0]) },
	}
	return frame.Group("channel", "List, enable, disable and test the channels of the bridge", "",
		list, toggle("enable", true), toggle("disable", false), test)
}

func checkChannel(name string) error {
	if channels[name] == nil {
		return frame.WithHint(frame.UsageErrorf("there is no channel %q", name), "see 'perlica service channel list'")
	}
	return nil
}

func (a *app) toggleChannel(name string, on bool) error {
	if err := checkChannel(name); err != nil {
		return err
	}
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	if err := config.SetProject(p.Dirs, p.Workspace, "service.channels."+name, fmt.Sprint(on)); err != nil {
		return err
	}
	if err := a.Say("%s: %s; restart the bridge if it runs", name,
		map[bool]string{true: "enabled", false: "disabled"}[on]); err != nil {
		return err
	}
	if p, err = a.Locate(nil); err != nil {
		return err
	}
	if isServed(p, name) != on {
		a.Note("the project's configuration is not trusted, so this does not count yet: perlica config trust")
	}
	if on {
		// The channel stays enabled even if parts are missing. This command and 'perlica service' name the missing
		// parts.
		if _, err := channels[name](a, p, nil); err != nil {
			if errors.Is(err, imessage.ErrSystem) {
				a.Note("the bridge starts without it here")
			}
			a.Complain(fmt.Errorf("it is not set up yet: %w", err))
		} else {
			a.Note("try it with 'perlica service channel test " + name + "'")
		}
	}
	return nil
}

// prober is a channel that can ask its platform for the name of its own account.
type prober interface {
	Probe(ctx context.Context) (name string, err error)
}

// openAlone opens one channel without the bridge.
func (a *app) openAlone(name string) (channel.Channel, error) {
	if err := checkChannel(name); err != nil {
		return nil, err
	}
	p, err := a.Locate(nil)
	if err != nil {
		return nil, err
	}
	open, err := channels[name](a, p, nil)
	if err != nil {
		return nil, frame.ExitUsage.With(err)
	}
	return open()
}

func (a *app) testChannel(ctx context.Context, name string) error {
	if err := checkChannel(name); err != nil {
		return err
	}
	p, err := a.Locate(nil)
	if err != nil {
		return err
	}
	if held, err := service.Holder(p.Workspace.Service().Lock); err == nil && held != nil {
		return frame.WithHint(held, "'perlica service status' says how its channels are")
	}
	c, err := a.openAlone(name)
	if err != nil {
		return err
	}
	who, err := tryChannel(ctx, c)
	if closer, ok := c.(io.Closer); ok {
		err = errors.Join(err, closer.Close())
	}
	if err != nil {
		return err
	}
	return a.Say("%s can be opened and read%s", name, who)
}

// tryChannel receives from a channel for a moment and returns the name of the channel's account.
func tryChannel(ctx context.Context, c channel.Channel) (who string, err error) {
	if p, ok := c.(prober); ok {
		name, err := p.Probe(ctx)
		if err != nil {
			return "", err
		}
		who = "; there it is " + frame.OneLine(name)
	}
	moment, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, _, err = c.Poll(moment, ""); moment.Err() != nil {
		err = ctx.Err() // The time is over and no message came, which is no error.
	}
	return who, err
}
