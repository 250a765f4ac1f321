package main

import (
	"github.com/spf13/cobra"
)

func (a *app) logCommand() *cobra.Command {
	return group("log", "Read, search, verify and prune the event log",
		`The event log is the record of everything: who asked what, every line between
Perlica and the agent, every question and who answered it, and how each call ended.
It is append-only: nothing on it is changed or reordered. These commands read it; only
prune takes something away, and says so on the log. See docs/log.md and docs/evidence.md.`,
		a.logTailCommand(), a.logShowCommand(), a.logSearchCommand(), a.logVerifyCommand(),
		a.logCheckpointCommand(), a.logProveCommand(), a.logKeyCommand(), a.logOpenCommand(), a.logResolveCommand(),
		a.logStatsCommand(), exportCommand(a), a.logImportCommand(), a.logPruneCommand(), a.logTrustCommand())
}
