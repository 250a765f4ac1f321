package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/perlica/perlica/eventlog"
)

// What is looked through in full has limits, so that a doctor has time for everybody.
const (
	maxVerified  = 200_000   // events
	maxIntegrity = 512 << 20 // bytes

	// A write lock is held for the moment of a commit; one that is held at every look
	// during this time is stuck.
	lockLooks    = 10
	lockInterval = 50 * time.Millisecond
)

// logLock looks for a process that keeps others from writing. It comes before the log is
// opened, as eventlog.WriteLockHolder demands.
func (e *examination) logLock() {
	if !e.usable {
		return
	}
	info, err := os.Stat(e.paths.EventLog)
	if err != nil || !info.Mode().IsRegular() {
		return // openLog says what is wrong
	}
	for range lockLooks {
		pid, err := eventlog.WriteLockHolder(e.paths.EventLog)
		switch {
		case err != nil:
			e.warn("", "who writes to the log cannot be told: %v", err)
			return
		case pid == 0:
			e.ok("nobody keeps others from writing")
			return
		}
		select {
		case <-time.After(lockInterval):
		case <-e.ctx.Done():
			return
		}
	}
	pid, _ := eventlog.WriteLockHolder(e.paths.EventLog) // for its number; the looks above have judged
	who := "a process"
	if pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	e.fail("no run can start before it lets go; a database browser with unsaved changes does this", "%s keeps the log locked for writing", who)
}

func (e *examination) openLog() {
	if !e.usable {
		return
	}
	info, err := os.Stat(e.paths.EventLog)
	if errors.Is(err, fs.ErrNotExist) {
		e.ok("none yet; the first run makes it")
		return
	}
	if err == nil && !info.Mode().IsRegular() {
		e.fail("move it away", "%s is not a file", e.paths.EventLog)
		return
	}
	var events int64
	log, err := eventlog.OpenReader(e.ctx, e.paths.EventLog)
	if err == nil {
		e.log, e.size = log, info.Size()
		events, _, err = log.Head(e.ctx)
	}
	if err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	e.ok("%s events, %s, %s", humanize.Comma(events), humanize.IBytes(uint64(info.Size())), e.paths.EventLog)
}

// logHint says what to do about a log that cannot be read.
func logHint(err error) string {
	switch {
	case errors.Is(err, eventlog.ErrNewer):
		return "use the newer version of Perlica that wrote it, or --context NAME for another log"
	case errors.Is(err, eventlog.ErrBusy):
		return "another program has locked it; end that program"
	case errors.Is(err, eventlog.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		return "make the file and its folder readable and writable"
	}
	return "no run can start with it: move it away to start a new log, and keep it"
}

func (e *examination) logSettings() {
	if e.log == nil {
		return
	}
	err := e.log.CheckSettings(e.ctx)
	var setting *eventlog.SettingError
	switch {
	case err == nil:
		e.ok("as they must be")
	case errors.As(err, &setting):
		e.fail("another program has changed the file; the next run that can lock it sets this back", "%s is %s and must be %s", setting.Name, setting.Got, setting.Want)
	default:
		e.fail(logHint(err), "%v", err)
	}
}

func (e *examination) logSchema() {
	if e.log == nil {
		return
	}
	faults, err := e.log.CheckSchema(e.ctx)
	switch {
	case err != nil:
		e.fail(logHint(err), "%v", err)
	case len(faults) > 0:
		e.fail("another program has changed the file; 'perlica log verify' says whether events were changed, too", "%s", strings.Join(faults, "; "))
	default:
		e.ok("append-only, as it was made")
	}
}

func (e *examination) logIntegrity() {
	switch {
	case e.log == nil:
		return
	case e.size > maxIntegrity:
		e.ok("not looked at: the file has more than %s", humanize.IBytes(maxIntegrity))
		return
	}
	if err := e.log.CheckIntegrity(e.ctx); err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	e.ok("SQLite finds no damage")
}

func (e *examination) logTree() {
	if e.log == nil {
		return
	}
	events, _, err := e.log.Head(e.ctx)
	if err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	if events > maxVerified {
		e.ok("not verified: there are more than %s events; 'perlica log verify' takes the time", humanize.Comma(maxVerified))
		return
	}
	rep, err := e.log.Verify(e.ctx, nil)
	const hint = "keep the file as it is: 'perlica log verify' says more"
	switch {
	case err != nil:
		e.fail(logHint(err), "%v", err)
	case rep.OK():
		e.ok("all %s events are as they were written", humanize.Comma(rep.Events))
	case rep.FirstBad > 0:
		e.fail(hint, "from event %d on: %s", rep.FirstBad, rep.Damage)
	default:
		e.fail(hint, "%s", rep.Damage)
	}
}

// views looks at the files that follow from the log.
func (e *examination) views() {
	if !e.usable {
		return
	}
	seen := 0
	for _, path := range []string{e.paths.Sessions, e.paths.Approvals} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			e.fail("move it away: it is made anew from the log", "%s is not a file", path)
			continue
		}
		if err == nil {
			_, err = eventlog.CheckView(e.ctx, path)
		}
		switch {
		case err == nil:
			seen++
		case errors.Is(err, eventlog.ErrCorrupt):
			e.warn("nothing is lost: its next use builds it anew from the log", "%s: %v", path, err)
		default:
			e.fail("delete it: it comes back from the log", "%s: %v", path, err)
		}
	}
	if seen > 0 {
		e.ok("%s in order", plural(seen, "view"))
	}
}

func (e *examination) unfinished() {
	if e.log == nil {
		return
	}
	list, err := ListUnfinished(e.ctx, e.log, e.paths.Locks)
	if err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	alive := 0
	for _, u := range list {
		if u.Alive {
			alive++
			continue
		}
		e.warn("nothing is sent again by itself; the next 'perlica run' puts on record that the outcome is unknown. What is known: perlica log show "+string(u.Run),
			"run %s has no outcome and its process is gone", u.Run)
	}
	switch {
	case alive > 0:
		e.ok("%s under way", plural(alive, "run"))
	case len(list) == 0:
		e.ok("none")
	}
}

// leftoverLocks counts the lock files of processes that are gone. They do no harm.
func (e *examination) leftoverLocks() {
	if !e.usable {
		return
	}
	entries, err := os.ReadDir(e.paths.Locks)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		e.fail("no run can start without its lock", "%v", err)
		return
	}
	held, left, sessions := 0, 0, 0
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, "session-") {
			sessions++ // not tried: a run that starts at this moment would find it busy
			continue
		}
		id, ok := strings.CutPrefix(strings.TrimSuffix(name, ".lock"), "run-")
		if !ok {
			continue
		}
		alive, err := isLocked(runLockPath(e.paths.Locks, id))
		switch {
		case err != nil:
			e.fail("a log needs a disk with working locks", "%v", err)
			return
		case alive:
			held++
		default:
			left++
		}
	}
	if held == 0 {
		left += sessions // whoever held them has gone
	}
	if left > 0 {
		e.ok("%s held; %s left behind by processes that are gone, which do no harm", plural(held, "lock"), plural(left, "file"))
		return
	}
	e.ok("%s held", plural(held, "lock"))
}
