package checkup

import (
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
)

// prunings looks for a removal that was begun and not completed: what it names may still be there.
func (e *examination) prunings() {
	if e.log == nil {
		return
	}
	list, err := e.log.UnfinishedPrunings(e.ctx)
	var alive bool
	if err == nil && len(list) > 0 {
		alive, err = kernel.IsPruning(e.paths.Locks)
	}
	switch {
	case err != nil:
		e.fail(logHint(err), "%v", err)
		return
	case len(list) == 0:
		e.ok("none")
		return
	case alive:
		e.ok("payloads are being removed")
		return
	}
	for _, p := range list {
		command, err := e.pruneAgain(p)
		if err != nil {
			e.fail(logHint(err), "%v", err)
			return
		}
		e.warn("run it again: "+command, "removing payloads of events up to %d was begun and not completed: some may still be in the file", p.Until)
	}
}

// pruneAgain is the command that completes a pruning.
func (e *examination) pruneAgain(p event.Pruning) (string, error) {
	command := "perlica log prune"
	if e.context != "default" {
		command = "perlica --context " + e.context + " log prune"
	}
	// What it ends with is older than the event behind it; that is log.pruned, if no time was given.
	for next, err := range e.log.Events(e.ctx, event.Query{After: p.Until, Limit: 1}) {
		if err != nil {
			return "", err
		}
		if next.Type == event.LogPruned && (p.Run != "" || p.Session != "") {
			break
		}
		command += " --before " + next.Time.UTC().Format(time.RFC3339Nano)
	}
	if p.Run != "" {
		command += " --run " + string(p.Run)
	}
	if p.Session != "" {
		command += " --session " + string(p.Session)
	}
	if p.Class == event.Frame {
		command += " --keep facts"
	}
	return command, nil
}
