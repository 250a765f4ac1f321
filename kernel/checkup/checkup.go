// Package checkup examines everything that a run depends on, so that a person finds the cause of a fault. It changes
// nothing.
package checkup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/process"
	"github.com/perlica/perlica/provider/sandbox"
)

// Status is the result of a check.
type Status string

// These are the results of a check.
const (
	OK Status = "ok"
	// Warn means that runs work, and that a person should know something about them.
	Warn Status = "warn"
	// Fail means that runs do not work.
	Fail Status = "fail"
)

// Check is the result of one check.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	// Hint names the next step.
	Hint string `json:"hint,omitempty"`
}

// Checkup examines everything that a run depends on. It changes nothing: it opens files read-only, creates no
// workspace, recovers no run and starts no agent. To test whether a folder can be written, it creates a temporary
// folder there and removes it.
type Checkup struct {
	Dirs      config.Dirs
	Workspace config.Workspace
	// Config holds the valid part of the configuration.
	Config *config.Config
	// Broken is the error of finding or loading the configuration, or nil.
	Broken error
	Agents agents.Resolver
	// Auditor returns a judge of the log's events. If it is nil, the events are not judged.
	Auditor func() verify.Auditor
	// Place returns an error if the file is not the log that the user expects at its path. If Place is nil, any log
	// is accepted.
	Place func(context.Context, *store.Reader) error
	// Held says that this process has the context's log open. Such a process must not ask the system for the log's
	// locks, because it would lose its own locks. See store.WriteLockHolder.
	Held bool
}

// Run calls the function report once for each result, always in the same order. It skips a check if an earlier check
// that it depends on failed. If a check panics, Run reports that as a failed check.
func (c Checkup) Run(ctx context.Context, report func(Check)) {
	e := &examination{Checkup: c, ctx: ctx, report: report}
	if e.Config.ContextID == "" {
		e.context = "default"
	} else {
		e.context = e.Config.ContextID
	}
	defer func() {
		if e.log != nil {
			_ = e.log.Close() // only read, so the error does not matter
		}
	}()
	for _, check := range []struct {
		name  string
		needs need
		run   func(*examination)
	}{
		{"configuration", always, (*examination).configuration},
		{"trust", always, (*examination).trust},
		{"workspace", always, (*examination).workspace},
		{"disk-space", inWorkspace, (*examination).diskSpace},
		{"log-writable", inWorkspace, (*examination).logWritable},
		{"log-lock", inWorkspace, (*examination).logLock},
		{"log", inWorkspace, (*examination).openLog},
		{"log-settings", onLog, (*examination).logSettings},
		{"log-schema", onLog, (*examination).logSchema},
		{"log-integrity", onLog, (*examination).logIntegrity},
		{"log-tree", onLog, (*examination).logTree},
		{"checkpoint-key", always, (*examination).checkpointKey},
		{"views", inWorkspace, (*examination).views},
		{"unfinished-runs", onLog, (*examination).unfinished},
		{"unfinished-prunings", onLog, (*examination).prunings},
		{"locks", inWorkspace, (*examination).leftoverLocks},
		{"debug-trail", inWorkspace, (*examination).debugTrail},
		{"sockets", always, (*examination).sockets},
		{"default-agent", always, (*examination).defaultAgent},
		{"agents", always, (*examination).agents},
		{"models", always, (*examination).models},
		{"sandbox", always, (*examination).sandbox},
		{"surviving-processes", always, (*examination).survivors},
	} {
		if ctx.Err() != nil {
			report(Check{Name: check.name, Status: Warn, Detail: "not looked at: " + context.Cause(ctx).Error()})
			continue
		}
		if check.needs == inWorkspace && !e.usable || check.needs == onLog && e.log == nil {
			continue // an earlier check reported the reason
		}
		e.guarded(check.name, check.run)
	}
}

// need is the precondition of a check.
type need int

const (
	always need = iota
	// inWorkspace requires a usable workspace.
	inWorkspace
	// onLog requires an open log.
	onLog
)

// examination is a running Checkup.
type examination struct {
	Checkup
	ctx    context.Context // lives as long as Run
	report func(Check)

	// name is the name of the running check.
	name string
	// context is the name of the examined Perlica context, which selects the log.
	context string
	paths   config.ContextPaths
	// usable means that the workspace is usable and that paths is set.
	usable bool
	// log is nil if no log exists or if the log cannot be opened.
	log  *store.Reader
	size int64 // bytes of the log's file
}

// guarded runs one check. It turns a panic of the check into a failed check, so that the other checks still run.
func (e *examination) guarded(name string, run func(*examination)) {
	e.name = name
	defer func() {
		if r := recover(); r != nil {
			e.fail("this is a fault of Perlica: please report it", "the check crashed: %v", r)
		}
	}()
	run(e)
}

func (e *examination) ok(format string, args ...any) {
	e.report(Check{Name: e.name, Status: OK, Detail: fmt.Sprintf(format, args...)})
}

func (e *examination) warn(hint, format string, args ...any) {
	e.report(Check{Name: e.name, Status: Warn, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *examination) fail(hint, format string, args ...any) {
	e.report(Check{Name: e.name, Status: Fail, Detail: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *examination) defaultAgent() {
	e.Agents.Attended = true // a machine without an installed agent gets the warning below
	a, err := e.Agents.Default()
	var missing *agents.Error
	switch {
	case errors.As(err, &missing):
		e.fail(missing.Hint, "%v", err)
		return
	case err != nil:
		e.fail("see 'perlica provider list'", "%v", err)
		return
	}
	if _, err := e.Agents.Find(a.Command[0]); err != nil {
		e.fail("see 'perlica provider show "+a.ID+"'", "%s: its program cannot be started: %v", a.ID, err)
		return
	}
	if a.Why == "" {
		e.ok("%s, as the configuration says", a.ID)
		return
	}
	if a.ID == agents.Predictable {
		e.warn("choose an agent with --provider or model.default_provider",
			"%s: %s; without a terminal, a run ends with exit code 2", a.ID, a.Why)
		return
	}
	e.ok("%s: %s", a.ID, a.Why)
}

// agents looks for the programs of the configured and the known agents. It skips the agents that run in Perlica itself,
// because these need no other program.
func (e *examination) agents() {
	var installed []string
	for _, l := range e.Agents.List() {
		switch {
		case l.State == agents.Installed && l.Command[0] != e.Agents.Self:
			installed = append(installed, l.ID)
		case l.Hint != "" && (l.Configured || l.State == agents.NeedsAdapter):
			e.warn(l.Hint, "%s cannot be used: %s", l.ID, l.Why)
		}
	}
	if len(installed) == 0 {
		e.ok("none is installed but the built-in one")
		return
	}
	e.ok("%s installed: %s", english.Plural(len(installed), "agent", ""), strings.Join(installed, ", "))
}

// models checks the needs of the configured model providers, and of the model servers that answer on this machine.
func (e *examination) models() {
	seen := 0
	for _, l := range e.Agents.List() {
		needs := e.Agents.Requirements(e.ctx, l.ID, false, e.Dirs, os.Getenv)
		for _, n := range needs {
			switch {
			case n.Name == "address" && strings.HasSuffix(n.Detail, "reachable"):
				e.ok("%s: %s", l.ID, n.Detail)
				seen++
			case l.Configured && !n.OK:
				e.warn(n.Hint, "%s: its %s: %s", l.ID, n.Name, n.Detail)
				seen++
			}
		}
	}
	if seen == 0 {
		e.ok("none on this machine, and nothing that is configured is missing")
	}
}

// sandbox looks for the program of the configured sandbox. It starts nothing, unlike 'perlica sandbox check'.
func (e *examination) sandbox() {
	mode := e.Config.Sandbox
	path, err := sandbox.Find(mode)
	var missing *sandbox.Error
	switch {
	case mode == "" || mode == sandbox.Off:
		e.ok("off: agents can touch Perlica; 'perlica sandbox check' tries this machine, and --sandbox protect is " +
			"recommended")
	case errors.As(err, &missing):
		e.fail(missing.Do, "%s: %s", mode, missing.Why)
	default:
		e.ok("%s, by %s", mode, path)
	}
}

// survivors lists agents' processes that still run although their Perlica process has ended.
func (e *examination) survivors() {
	left := process.Survivors()
	if len(left) == 0 {
		e.ok("none")
		return
	}
	var words []string
	for _, s := range left {
		words = append(words, fmt.Sprintf("%d (%s, of %s)", s.PID, s.Command, s.Agent))
	}
	e.warn("Perlica never ends a process by its number; look at them, then end them yourself: kill PID",
		"left behind by agents: %s", strings.Join(words, ", "))
}

// prunings looks for prunings that were interrupted. Some events of such a pruning may still have their payloads.
func (e *examination) prunings() {
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
		e.warn("run it again: "+command,
			"removing payloads of events up to %d was begun and not completed: some may still be in the file", p.Until)
	}
}

// pruneAgain returns the command that completes a pruning.
func (e *examination) pruneAgain(p event.Pruning) (string, error) {
	command := "perlica log prune"
	if e.context != "default" {
		command = "perlica --context " + e.context + " log prune"
	}
	// The option --before needs a time that is later than every pruned event. The time of the next event after p.Until
	// is such a time. For a pruning without a time limit, this event is its own log.pruned.
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
