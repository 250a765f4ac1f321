package checkup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/eventlog/view"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/record"
)

// Above these sizes the checkup skips the full checks, so that it ends soon.
const (
	maxVerified  = 200_000   // events
	maxIntegrity = 512 << 20 // bytes

	// A process holds the write lock only during a commit. If the lock is held at each of these lookups, its owner is
	// stuck.
	lockLooks    = 10
	lockInterval = 50 * time.Millisecond
)

// logLock looks for a process that blocks other writers. It runs before the log is opened, because
// store.WriteLockHolder must not run in a process that has the log open.
func (e *examination) logLock() {
	if e.Held {
		e.ok("this process has the log open, and writes to it")
		return
	}
	info, err := os.Stat(e.paths.EventLog)
	if err != nil || !info.Mode().IsRegular() {
		return // openLog reports the error
	}
	for range lockLooks {
		pid, err := store.WriteLockHolder(e.paths.EventLog)
		switch {
		case err != nil:
			e.warn("", "who writes to the log cannot be told: %v", err)
			return
		case pid == 0:
			e.ok("no process keeps others from writing")
			return
		}
		select {
		case <-time.After(lockInterval):
		case <-e.ctx.Done():
			return
		}
	}
	// The loop above has decided already. This call only finds the process id.
	pid, _ := store.WriteLockHolder(e.paths.EventLog)
	who := "a process"
	if pid > 0 {
		who = fmt.Sprintf("process %d", pid)
	}
	e.fail("no run can start before it lets go; a database browser with unsaved changes does this",
		"%s keeps the log locked for writing", who)
}

func (e *examination) openLog() {
	const lost = "no run can start: put a copy of it back, or, to begin a new log, move it and the .anchor and .intents beside it " +
		"away, and keep them"
	info, err := os.Stat(e.paths.EventLog)
	anchored := anchor.Size(e.paths.EventLog)
	if errors.Is(err, fs.ErrNotExist) {
		if anchored > 0 {
			e.fail(lost, "there is no log, and its anchor covers %s events", humanize.Comma(anchored))
			return
		}
		if left, err := intents.Read(e.paths.EventLog); err == nil && left.Called() > 0 {
			e.warn("put a copy of the log back; in a new log these inputs count as called",
				"there is no log, and its .intents names %s", english.Plural(left.Called(), "call", ""))
			return
		}
		e.ok("none yet; the first run makes it")
		return
	}
	if err == nil && !info.Mode().IsRegular() {
		e.fail("move it away", "%s is not a file", e.paths.EventLog)
		return
	}
	var events int64
	log, err := store.OpenReader(e.ctx, e.paths.EventLog)
	if err == nil {
		e.log, e.size = log, info.Size()
		events, _, err = log.Head(e.ctx)
	}
	if anchored > events && (err == nil || errors.Is(err, disk.ErrNotExist)) {
		e.fail(lost, "the log ends at event %s, and its anchor covers %s", humanize.Comma(events), humanize.Comma(anchored))
		return
	}
	if err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	e.ok("%s events, %s, %s", humanize.Comma(events), humanize.IBytes(uint64(info.Size())), e.paths.EventLog)
}

// logHint returns the next step for a log that cannot be read.
func logHint(err error) string {
	switch {
	case errors.Is(err, disk.ErrVersion):
		return "use the version of Perlica that wrote it, or --context NAME for another log"
	case errors.Is(err, disk.ErrBusy):
		return "another program has locked it; end that program"
	case errors.Is(err, disk.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		return "make the file and its folder readable and writable"
	case errors.Is(err, disk.ErrNotExist):
		return "the next run begins a new log in it"
	}
	return "no run can start with it: to start a new log, move it and the .anchor and .intents beside it away, " +
		"and keep them"
}

func (e *examination) logSettings() {
	err := e.log.CheckSettings(e.ctx)
	var setting *disk.SettingError
	var linked *disk.LinkedError
	switch {
	case err == nil:
		e.ok("as required")
	case errors.As(err, &linked):
		e.fail(linked.Hint(), "%v", err)
	case errors.As(err, &setting):
		e.warn("another program has changed the file; the next run that can lock it sets this back",
			"%s is %s and must be %s", setting.Name, setting.Got, setting.Want)
	default:
		e.fail(logHint(err), "%v", err)
	}
}

func (e *examination) logSchema() {
	faults, err := e.log.CheckSchema(e.ctx)
	switch {
	case err != nil:
		e.fail(logHint(err), "%v", err)
	case len(faults) > 0:
		e.fail("another program has changed the file; 'perlica log verify' says whether events were changed, too", "%s",
			strings.Join(faults, "; "))
	default:
		e.ok("append-only, as it was made")
	}
}

func (e *examination) logIntegrity() {
	if e.size > maxIntegrity {
		e.ok("not looked at: the file has more than %s; 'perlica log verify' takes the time, some four seconds for a "+
			"million events", humanize.IBytes(maxIntegrity))
		return
	}
	if err := e.log.CheckIntegrity(e.ctx); err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	e.ok("SQLite finds no damage, indexes included")
}

func (e *examination) logTree() {
	events, _, err := e.log.Head(e.ctx)
	if err != nil {
		e.fail(logHint(err), "%v", err)
		return
	}
	if events > maxVerified {
		e.ok("not verified: there are more than %s events; 'perlica log verify' takes the time", humanize.Comma(maxVerified))
		return
	}
	opt := verify.Options{NoImport: true, Place: e.Place}
	if e.Auditor != nil {
		opt.Audit = e.Auditor()
	}
	// An unreadable key cannot verify the checkpoints. The check "checkpoint-key" reports the reason.
	if keys, err := evidence.ReadKeys(e.Dirs.KeyDir()); err == nil && e.Dirs.State != "" {
		if origin, err := e.log.Origin(e.ctx); err == nil {
			opt.Keys = keys.Verifiers(origin)
		}
	}
	rep, err := verify.Log(e.ctx, e.log, opt)
	switch {
	case err != nil:
		e.fail(logHint(err), "%v", err)
	case rep.OK() && len(rep.Warnings) > 0:
		e.warn("'perlica log verify' says more", "all %s events are as they were written, but %s", humanize.Comma(rep.Events),
			rep.Warnings[0])
	case rep.OK():
		e.ok("all %s events are as they were written", humanize.Comma(rep.Events))
	default:
		e.fail("keep the file as it is: 'perlica log verify' says more", "%s", rep.Findings[0].What)
	}
}

// checkpointKey checks the key that signs checkpoints. Runs also work without a key.
func (e *examination) checkpointKey() {
	dir := e.Dirs.KeyDir()
	if e.Dirs.State == "" {
		return
	}
	path := evidence.KeyPath(dir)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := creatable(path); err != nil {
			e.warn("make the folder writable; until then checkpoints are not signed, and nobody else can use them to "+
				"check the log", "no key can be made in %s: %v", dir, err)
			return
		}
		e.ok("none yet; the first run makes it")
		return
	}
	keys, err := evidence.ReadKeys(dir)
	if err != nil {
		hint := "Checkpoints are not signed until the key can be used. If it is damaged, put back a copy of it, or move " +
			"it away: the next run makes another"
		if info, serr := os.Stat(path); serr == nil && info.Mode().Perm()&0o077 != 0 {
			hint = "chmod 600 " + path
		}
		e.warn(hint, "%v", err)
		return
	}
	if retired := len(keys.VerifierKeys("perlica")) - 1; retired > 0 {
		e.ok("%s, and %s", path, english.Plural(retired, "retired key", ""))
		return
	}
	e.ok("%s", path)
}

// views checks the database views that are derived from the log.
func (e *examination) views() {
	seen := 0
	for _, path := range []string{e.paths.Sessions, e.paths.Approvals} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			e.fail("move it away: it is made again from the log", "%s is not a file", path)
			continue
		}
		if err == nil {
			_, err = view.Check(e.ctx, path)
		}
		switch {
		case err == nil:
			seen++
		case errors.Is(err, disk.ErrCorrupt):
			e.warn("nothing is lost: its next use builds it again from the log", "%s: %v", path, err)
		default:
			e.fail("delete it: it comes back from the log", "%s: %v", path, err)
		}
	}
	if seen > 0 {
		e.ok("%s in order", english.Plural(seen, "view", ""))
	}
}

func (e *examination) unfinished() {
	list, err := record.ListUnfinished(e.ctx, e.log, e.paths.Locks)
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
		e.warn("nothing is sent again by itself; the next 'perlica run' puts on record that the outcome is unknown. What "+
			"is known: perlica log show "+string(u.Run),
			"run %s has no outcome and its process is gone", u.Run)
	}
	switch {
	case alive > 0:
		e.ok("%s under way", english.Plural(alive, "run", ""))
	case len(list) == 0:
		e.ok("none")
	}
}

// leftoverLocks counts the lock files that are not locked. Ended processes and idle chats leave such files, and they do
// no harm.
func (e *examination) leftoverLocks() {
	held, left, err := filelock.Count(e.paths.Locks)
	if err != nil {
		e.fail("no run can start without its lock; a log needs a disk with working locks", "%v", err)
		return
	}
	if left > 0 {
		e.ok("%s held; %s that no run holds, which do no harm", english.Plural(held, "lock", ""),
			english.Plural(left, "file", ""))
		return
	}
	e.ok("%s held", english.Plural(held, "lock", ""))
}
