package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/program"
)

// A Hook is a program that gets the events of some types.
type Hook struct {
	program.Command
	On      []event.Type
	Timeout time.Duration
	Origin  string
}

// id names the hook's files. It depends on the command and the types, so a changed hook starts with new events.
func (h Hook) id() string {
	b, err := json.Marshal([]any{h.Words, h.Folder, h.On})
	if err != nil { // cannot happen: these are texts
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// lock returns the path of the lock of the process that delivers to the hook.
func (h Hook) lock(dir string) string { return filepath.Join(dir, "hook-"+h.id()+".lock") }

// Positions is a folder with one file for each hook. The file has the number of the last event that the hook got.
type Positions string

// read returns the number of the last event that the hook got. ok is false if the hook never got one.
func (p Positions) read(h Hook) (at event.Seq, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(string(p), h.id()))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return event.Seq(n), err == nil, nil // a half-written file counts as absent
}

// write replaces the number. It does not sync the file: after a power failure the hook gets some events again.
func (p Positions) write(h Hook, at event.Seq) error {
	path := filepath.Join(string(p), h.id())
	if err := os.MkdirAll(string(p), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(int64(at), 10)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Left reports whether an event waits for one of the hooks that already got events.
func (p Positions) Left(ctx context.Context, log event.Reader, hooks []Hook) (bool, error) {
	for _, h := range hooks {
		at, ok, err := p.read(h)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		last, there, err := log.Last(ctx, event.Query{Types: h.On})
		if err != nil || there && last.Seq > at {
			return err == nil, err
		}
	}
	return false, nil
}

// Deliverer delivers the events of a log to hooks.
type Deliverer struct {
	Log       *eventlog.Log
	Locks     string // the folder of the context's locks
	Positions Positions
	Store     *program.Store
	Hooks     []Hook
	// After is the number of the event after which a new hook gets events. A negative number means the newest event.
	After event.Seq
	// Wait makes Deliver wait for another process that delivers to a hook.
	Wait     bool
	Trail    *slog.Logger
	Redactor *redact.Redactor
}

// Deliver starts the program of each hook for each event that the hook did not get yet, until no such event is left.
// If another process delivers to a hook, Deliver leaves that hook to it, or waits. The result "started" is the
// number of starts.
func (d *Deliverer) Deliver(ctx context.Context) (started int, err error) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, h := range d.Hooks {
		wg.Go(func() {
			n, herr := d.deliverHook(ctx, h)
			mu.Lock()
			defer mu.Unlock()
			started += n
			if herr != nil {
				err = errors.Join(err, fmt.Errorf("hook %s (%s): %w", h.Name(), h.Origin, herr))
			}
		})
	}
	wg.Wait()
	return started, err
}

func (d *Deliverer) deliverHook(ctx context.Context, h Hook) (started int, err error) {
	for {
		var lock *filelock.Lock
		err := filelock.Poll(ctx, d.Wait, func() (err error) {
			lock, err = filelock.Acquire(h.lock(d.Locks))
			return err
		}, filelock.ErrHeld)
		if errors.Is(err, filelock.ErrHeld) && ctx.Err() == nil {
			return started, nil
		}
		if err != nil {
			return started, err
		}
		at, n, err := d.deliverEvents(ctx, h)
		lock.Release()
		started += n
		if err != nil {
			return started, err
		}
		// An event may have come just before the release. Its writer saw the lock and started no other deliverer, so
		// this one must look once more.
		last, ok, err := d.Log.Last(ctx, event.Query{Types: h.On})
		if err != nil || !ok || last.Seq <= at {
			return started, err
		}
	}
}

// deliverEvents delivers all events after the hook's position. The caller holds the hook's lock.
func (d *Deliverer) deliverEvents(ctx context.Context, h Hook) (at event.Seq, started int, err error) {
	newest, _, err := d.Log.Last(ctx, event.Query{})
	if err != nil {
		return 0, 0, err
	}
	at, known, err := d.Positions.read(h)
	if err != nil {
		return 0, 0, err
	}
	if !known {
		if at = d.After; at < 0 {
			at = newest.Seq
		}
	}
	at = min(at, newest.Seq) // a number after the newest event comes from another log
	if err := d.Positions.write(h, at); err != nil {
		return at, 0, err
	}
	for {
		e, ok, err := d.next(ctx, h, at)
		if err != nil || !ok {
			return at, started, err
		}
		if err := d.deliverEvent(ctx, h, e); err != nil {
			return at, started, err
		}
		started++
		// The position is written only now. So if the process has died before, the hook gets this event again.
		at = e.Seq
		if err := d.Positions.write(h, at); err != nil {
			return at, started, err
		}
	}
}

// next returns the first event of the hook's types after the event "at".
func (d *Deliverer) next(ctx context.Context, h Hook, at event.Seq) (e event.Event, ok bool, err error) {
	for e, err := range d.Log.Events(ctx, event.Query{After: at, Types: h.On, Limit: 1}) {
		return e, err == nil, err
	}
	return e, false, nil
}

// deliverEvent starts the hook's program for one event. A failure of the program is no error: the hook got the event.
func (d *Deliverer) deliverEvent(ctx context.Context, h Hook, e event.Event) error {
	input, err := json.Marshal(e)
	if err != nil {
		return err
	}
	res, err := d.Store.Run(ctx, program.Start{Command: h.Command, Kind: KindHook, Input: append(input, '\n'),
		Timeout: h.Timeout, Limit: "deny"})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	line := []any{"program", h.Name(), "event", int64(e.Seq), "type", string(e.Type), "ms", res.Took.Milliseconds(),
		"stdout", string(res.Stdout), "stderr", res.Stderr}
	if err == nil {
		d.Trail.Info("hook", line...)
		return nil
	}
	d.Trail.Warn("hook failed", append(line, "error", err.Error())...)
	return d.recordFailure(ctx, h, e, newFailure(KindHook, h.Command, h.Origin, err, res))
}

// recordFailure records the first failure of a hook in the event's run. Outside of runs it records the first failure in
// the session, or in the log.
func (d *Deliverer) recordFailure(ctx context.Context, h Hook, e event.Event, f fact.HookFailed) error {
	q := event.Query{Types: []event.Type{event.HookFailed}, Run: e.Run, Session: e.Session}
	for earlier, err := range d.Log.Events(ctx, q) {
		if err != nil {
			return err
		}
		if old, err := fact.Decode[fact.HookFailed](earlier); err == nil && earlier.Run == e.Run && old.Kind == KindHook &&
			slices.Equal(old.Command, f.Command) {
			return nil
		}
	}
	f.Event, f.Stderr = e.Seq, d.Redactor.Text(f.Stderr)
	_, err := d.Log.Append(ctx, event.NewFact(event.HookFailed, "perlica", e.Refs, f))
	return err
}
