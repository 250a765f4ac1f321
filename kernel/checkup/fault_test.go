package checkup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
)

// harm changes a project or a checkup before the examination.
type harm func(t *testing.T, p *project.Project, c *Checkup)

// result is the expected result of a check. Its Detail and Hint are only parts of the real texts.
type result = Check

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pathsOf(t *testing.T, p *project.Project) config.ContextPaths {
	t.Helper()
	paths, err := p.Workspace.Context("default")
	try(t, err)
	return paths
}

// instead replaces the file at path with a file of this text. If text is empty, it replaces the file with a folder.
func instead(t *testing.T, path, text string) {
	t.Helper()
	try(t, os.RemoveAll(path))
	if text == "" {
		try(t, os.MkdirAll(path, 0o700))
		return
	}
	try(t, os.MkdirAll(filepath.Dir(path), 0o700))
	try(t, os.WriteFile(path, []byte(text), 0o600))
}

// tamper changes the log's file without Perlica.
func tamper(t *testing.T, p *project.Project, sql string) {
	t.Helper()
	db, err := sqlx.Open("sqlite", logOf(t, p))
	try(t, err)
	_, err = db.Exec(storetest.Editable + sql)
	try(t, errors.Join(err, db.Close()))
}

// put appends events to the log.
func put(t *testing.T, p *project.Project, events ...event.Event) {
	t.Helper()
	log, err := eventlog.Open(t.Context(), logOf(t, p), eventlog.Options{Context: "default"})
	try(t, err)
	_, err = log.Append(t.Context(), events...)
	try(t, errors.Join(err, log.Close()))
}

// abandon writes the events of a run that ended without an outcome.
func abandon(t *testing.T, p *project.Project) {
	t.Helper()
	refs := event.Refs{Session: "s", Run: "r", Trace: "t", Input: "i"}
	put(t, p,
		event.NewFact(event.MessageReceived, "user", refs, map[string]string{"text": "hi", "provider": "p"}),
		event.NewFact(event.Requested, "perlica", refs, map[string]string{"provider": "p"}))
}

func hold(t *testing.T, path string) {
	t.Helper()
	lock, err := filelock.Acquire(path)
	try(t, err)
	t.Cleanup(lock.Release)
}

// faults examines one new project for each fault, and compares the result of the check with the wanted one.
func faults(t *testing.T, list map[string]struct {
	harm harm
	want result
},
) {
	t.Helper()
	for name, tt := range list {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			got := examined(t, p, func(c *Checkup) { tt.harm(t, p, c) })[tt.want.Name]
			if got.Status != tt.want.Status || !strings.Contains(got.Detail, tt.want.Detail) ||
				!strings.Contains(got.Hint, tt.want.Hint) || (tt.want.Hint == "") != (got.Hint == "") {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestFaultsOfTheLog checks that the right check reports each fault of the log, with a hint about the next step.
func TestFaultsOfTheLog(t *testing.T) {
	const lost = "no run can start: put a copy of it back"
	anchored := func(t *testing.T, p *project.Project) {
		t.Helper()
		try(t, anchor.Append(logOf(t, p), evidence.Checkpoint{Origin: "perlica/x", Size: 5000},
			func(write func() error) error { return write() }))
	}
	faults(t, map[string]struct {
		harm harm
		want result
	}{
		"none": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.RemoveAll(pathsOf(t, p).Dir))
		}, result{"log", OK, "none yet; the first run makes it", ""}},
		"lost": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.Remove(logOf(t, p)))
			anchored(t, p)
		}, result{"log", Fail, "there is no log, and its anchor covers 5,000 events", lost}},
		"its end is lost": {func(t *testing.T, p *project.Project, _ *Checkup) {
			abandon(t, p)
			try(t, os.RemoveAll(anchor.Path(logOf(t, p))))
			anchored(t, p)
		}, result{"log", Fail, "and its anchor covers 5,000", lost}},
		"a folder": {func(t *testing.T, p *project.Project, _ *Checkup) { instead(t, logOf(t, p), "") },
			result{"log", Fail, "is not a file", "move it away"}},
		"no database": {func(t *testing.T, p *project.Project, _ *Checkup) { overwrite(t, p, "no database at all") },
			result{"log", Fail, "", "no run can start with it"}},
		"of another version": {func(t *testing.T, p *project.Project,
			_ *Checkup) {
			tamper(t, p, `PRAGMA user_version = 999`)
		},
			result{"log", Fail, "schema 999", "use the version of Perlica that wrote it"}},
		"a setting": {func(t *testing.T, p *project.Project, _ *Checkup) { tamper(t, p, `PRAGMA journal_mode = delete`) },
			result{"log-settings", Warn, "journal_mode is delete and must be wal", "another program has changed the file"}},
		"the schema": {func(t *testing.T, p *project.Project, _ *Checkup) { tamper(t, p, `CREATE TABLE odd (x)`) },
			result{"log-schema", Fail, "odd", "'perlica log verify' says whether events were changed"}},
		"this process has it open": {func(_ *testing.T, _ *project.Project, c *Checkup) { c.Held = true },
			result{"log-lock", OK, "this process has the log open", ""}},
		"not to be written": {func(t *testing.T, p *project.Project, _ *Checkup) { try(t, os.Chmod(logOf(t, p), 0o400)) },
			result{"log-writable", Fail, "may not be written by its owner", "chmod u+w "}},
		"an unfinished run": {func(t *testing.T, p *project.Project, _ *Checkup) { abandon(t, p) },
			result{"unfinished-runs", Warn, "run r has no outcome and its process is gone", "perlica log show r"}},
		"a run under way": {func(t *testing.T, p *project.Project, _ *Checkup) {
			abandon(t, p)
			hold(t, filelock.Run(pathsOf(t, p).Locks, "r"))
		}, result{"unfinished-runs", OK, "1 run under way", ""}},
		"locks": {func(t *testing.T, p *project.Project, _ *Checkup) {
			hold(t, filelock.Run(pathsOf(t, p).Locks, "r"))
			instead(t, filelock.Run(pathsOf(t, p).Locks, "gone"), "-")
		}, result{"locks", OK, "1 lock held; 1 file that no run holds", ""}},
		"a lock that is none": {func(t *testing.T, p *project.Project, _ *Checkup) {
			try(t, os.Symlink("elsewhere", filelock.Run(pathsOf(t, p).Locks, "r")))
		}, result{"workspace", Fail, "", "move it away, or run in another folder"}},
		"locks that are held": {func(t *testing.T, p *project.Project, _ *Checkup) {
			hold(t, filelock.Run(pathsOf(t, p).Locks, "r"))
			hold(t, filelock.Run(pathsOf(t, p).Locks, "r2"))
		}, result{"locks", OK, "2 locks held", ""}},
	})
}

// TestChangedEvents checks that a changed event, and the missing triggers, are found.
func TestChangedEvents(t *testing.T) {
	p := newProject(t)
	abandon(t, p)
	db, err := sqlx.Open("sqlite", logOf(t, p))
	try(t, err)
	var triggers []string
	try(t, db.Select(&triggers, `SELECT name FROM sqlite_schema WHERE type = 'trigger'`))
	for _, name := range triggers {
		_, err = db.Exec(`DROP TRIGGER "` + name + `"`)
		try(t, err)
	}
	_, err = db.Exec(`UPDATE entries SET actor = 0 WHERE seq = (SELECT max(seq) FROM entries)`)
	try(t, errors.Join(err, db.Close()))
	got := examined(t, p, nil)
	if c := got["log-tree"]; c.Status != Fail || !strings.Contains(c.Hint, "keep the file as it is") || c.Detail == "" {
		t.Errorf("%+v", c)
	}
	if c := got["log-schema"]; c.Status != Fail {
		t.Errorf("%+v", c)
	}
}

// TestADamagedIndex damages a page of an index, and checks that the checkup reports the damage.
func TestADamagedIndex(t *testing.T) {
	p := newProject(t)
	abandon(t, p)
	db, err := sqlx.Open("sqlite", logOf(t, p))
	try(t, err)
	var page, size int64
	_, err = db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
	try(t, err)
	try(t, db.Get(&page,
		`SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'entries' AND rootpage > 0 LIMIT 1`))
	try(t, db.Get(&size, `PRAGMA page_size`))
	try(t, db.Close())
	f, err := os.OpenFile(logOf(t, p), os.O_WRONLY, 0)
	try(t, err)
	_, err = f.WriteAt(make([]byte, 64), page*size-64) // the first entry of the page
	try(t, errors.Join(err, f.Close()))
	if c := examined(t, p, nil)["log-integrity"]; c.Status != Fail || c.Detail == "" ||
		!strings.Contains(c.Hint, "no run can start with it") {
		t.Errorf("%+v", c)
	}
}

// TestUnfinishedPrunings expects a hint with the complete command that finishes a pruning.
func TestUnfinishedPrunings(t *testing.T) {
	begin := func(pruning event.Pruning) harm {
		return func(t *testing.T, p *project.Project, _ *Checkup) {
			abandon(t, p)
			put(t, p, event.NewFact(event.LogPruned, "user", event.Refs{}, pruning))
		}
	}
	warns := func(hint string) result {
		return result{"unfinished-prunings", Warn, "was begun and not completed", "run it again: perlica log prune" + hint}
	}
	faults(t, map[string]struct {
		harm harm
		want result
	}{
		"of a time":    {begin(event.Pruning{Until: 1, By: "user"}), warns(" --before 20")},
		"of a run":     {begin(event.Pruning{Until: 2, Run: "r", By: "user"}), warns(" --run r")},
		"of a session": {begin(event.Pruning{Until: 2, Session: "s", By: "user"}), warns(" --session s")},
		"of frames": {begin(event.Pruning{Until: 2, Run: "r", Class: event.Frame, By: "user"}),
			warns(" --run r --keep facts")},
		"under way": {func(t *testing.T, p *project.Project, c *Checkup) {
			begin(event.Pruning{Until: 2, By: "user"})(t, p, c)
			hold(t, filepath.Join(pathsOf(t, p).Locks, "prune.lock"))
		}, result{"unfinished-prunings", OK, "payloads are being removed", ""}},
	})
}

// TestOfAnotherContext expects that the command in the hint names the context.
func TestOfAnotherContext(t *testing.T) {
	p := newProject(t)
	try(t, os.Rename(pathsOf(t, p).Dir, filepath.Join(filepath.Dir(pathsOf(t, p).Dir), "work")))
	p.Config.ContextID = "work"
	log, err := eventlog.Open(t.Context(), filepath.Join(filepath.Dir(pathsOf(t, p).Dir), "work",
		filepath.Base(logOf(t, p))), eventlog.Options{Context: "work"})
	try(t, err)
	_, err = log.Append(t.Context(), event.NewFact(event.LogPruned, "user", event.Refs{},
		event.Pruning{Until: 1, Run: "r", By: "user"}))
	try(t, errors.Join(err, log.Close()))
	got := examined(t, p, nil)
	if c := got["unfinished-prunings"]; c.Hint != "run it again: perlica --context work log prune --run r" {
		t.Errorf("%+v", c)
	}
	if c := got["workspace"]; !strings.HasSuffix(c.Detail, ", context work") {
		t.Errorf("%+v", c)
	}
}

// TestCutOff checks that, after ctx was cancelled, each remaining check reports that it did not run.
func TestCutOff(t *testing.T) {
	p := newProject(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why, n := errors.New("no time is left"), 0
	Checkup{Dirs: p.Dirs, Workspace: p.Workspace, Config: p.Config, Agents: p.Resolver()}.Run(ctx, func(c Check) {
		if n++; c.Name == "trust" {
			cancel(why)
		} else if n > 2 && (c.Status != Warn || c.Detail != "not looked at: no time is left") {
			t.Errorf("%+v", c)
		}
	})
	if n != 23 {
		t.Errorf("%d results", n)
	}
}
