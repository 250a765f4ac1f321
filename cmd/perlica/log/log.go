// Package log holds the commands that read, check and maintain the event log.
package log

import (
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
	"github.com/perlica/perlica/cmd/perlica/export"
)

// app is an invocation, with the commands of this package as its methods.
type app struct{ *cli.App }

// Command returns the command with those below it.
func Command(a *cli.App) *cobra.Command { return (&app{a}).logCommand() }

// TailCommand returns the command that shows and follows the newest events.
func TailCommand(a *cli.App) *cobra.Command { return (&app{a}).logTailCommand() }

func (a *app) logCommand() *cobra.Command {
	cmd := cli.Group("log", "Read, search, verify and prune the event log",
		`The event log is the record of everything: who asked what, every line between
Perlica and the agent, every question and who answered it, and how each call ended.
It is append-only: nothing on it is changed or reordered. These commands read it; only
prune takes something away, and says so on the log. See docs/log.md and docs/evidence.md.`,
		a.logTailCommand(), a.logShowCommand(), a.logSearchCommand(), a.logVerifyCommand(),
		a.logCheckpointCommand(), a.logProveCommand(), a.logKeyCommand(), a.logOpenCommand(), a.logResolveCommand(),
		a.logStatsCommand(), export.Command(a.App), a.logImportCommand(), a.logPruneCommand(), a.logTrustCommand(), a.logListCommand())
	cmd.PersistentFlags().BoolVar(&a.UserFlag, "user", false, "the log of what belongs to no project, below your own state")
	return cmd
}
