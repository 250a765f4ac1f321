package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
)

// A ForkError says that a worker's log and its copy have an event in two versions. The log was rewritten, or put back
// from a backup, or it is the log of two machines, of which one is a clone of the other, or the copy was edited. Which
// it is cannot be told from here, and nobody may go on: a log that forgot an intent would call again.
type ForkError struct {
	Worker string
	Seq    event.Seq // the first event known to differ, or one behind it
	What   string    // how that was found
}

func (e *ForkError) Error() string {
	return fmt.Sprintf("the log of %s is not the one that the hub has a copy of: %s. It was rewritten, or put back from a backup, or two machines have it, one a clone of the other, or somebody edited the copy. Nothing more is taken under this name", e.Worker, e.What)
}

// Hint returns what to do.
func (e *ForkError) Hint() string {
	return "see 'Copies' in docs/team.md: a clone, or a log from a backup, joins as another machine"
}

// A stretch that is sent ends with the first of these.
const (
	sendEvents = 1000
	sendBytes  = 4 << 20
)

// CopySender keeps the copy of a worker's log up to date. It is used by one goroutine.
type CopySender struct {
	hub    *Hub
	log    *store.Reader
	worker string
	known  bool // the hub knows the worker's log by its name
	end    Copy // as far as it is known
}

// NewCopySender prepares to send the log of a worker. The hub's connection should be the sender's own: a stretch can take
// long.
func NewCopySender(h *Hub, log *store.Reader, worker string) *CopySender {
	return &CopySender{hub: h, log: log, worker: worker}
}

// Check compares the log with its copy, as far as the copy goes: its last event, and the root that its newest
// checkpoint names. The error is a *ForkError if they are two logs, also if another process of the worker found
// that, and ErrOtherLog if the worker's name is that of another log.
func (s *CopySender) Check(ctx context.Context) error {
	origin, err := s.log.Origin(ctx)
	if err != nil {
		return err
	}
	// The copy first: all that is in it was in the log before.
	s.end, err = enrol(ctx, s.hub, s.worker, origin, s.known)
	if s.known = err == nil; err != nil {
		return err
	}
	fork, err := s.compare(ctx)
	if err != nil || fork == nil {
		return err
	}
	if s.end.Forked == 0 {
		if err := ForkCopy(ctx, s.hub, s.worker, fork.Seq); err != nil && !errors.Is(err, ErrNotAllowed) {
			return errors.Join(fork, err)
		}
	}
	return fork
}

// compare says whether the log has another history than its copy, nil if not.
func (s *CopySender) compare(ctx context.Context) (*ForkError, error) {
	fork := func(seq int64, format string, args ...any) (*ForkError, error) {
		return &ForkError{s.worker, event.Seq(seq), fmt.Sprintf(format, args...)}, nil
	}
	h := s.log.Hashes(ctx)
	size, err := h.Size()
	switch {
	case err != nil:
		return nil, err
	case s.end.Forked != 0:
		return fork(int64(s.end.Forked), "event %d was found to be another one", s.end.Forked)
	case s.end.Size > size:
		return fork(size+1, "the copy has %d events, the log %d", s.end.Size, size)
	case s.end.Size == 0:
		return nil, nil
	}
	leaf, err := h.Subtree(0, s.end.Size-1)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(leaf[:], s.end.Leaf) {
		return fork(s.end.Size, "event %d is another one", s.end.Size)
	}
	if s.end.Note == "" {
		return nil, nil
	}
	c, err := evidence.ParseCheckpoint(s.end.Note)
	if err != nil || c.Origin != s.end.Origin {
		return nil, nil // none of this worker's: a keeper says so
	}
	if err := s.log.IsOwn(ctx, c); errors.Is(err, evidence.ErrCheckpoint) {
		return fork(c.Size, "its first %d events have another root than in the checkpoint that is there", c.Size)
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// Send sends what the copy lacks, behind a Check. When it returns nil the copy has what the log had when Send began,
// the checkpoints, too. It may be broken off at any time: the next one goes on where the copy ends.
func (s *CopySender) Send(ctx context.Context) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	for {
		stretch, more, err := s.next(ctx)
		if err != nil || len(stretch.Events) == 0 && len(stretch.Checkpoints) == 0 {
			return err
		}
		switch err := AppendCopy(ctx, s.hub, stretch); {
		case errors.Is(err, ErrMoved): // another process of this worker sends, or a clone
			if err := s.Check(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if n := len(stretch.Events); n > 0 {
			last := &stretch.Events[n-1]
			s.end.Size, s.end.Leaf = int64(last.Seq), bytes.Clone(last.LeafHash[:])
		}
		if n := len(stretch.Checkpoints); n > 0 {
			s.end.Checkpoint, s.end.Note = stretch.Checkpoints[n-1].Size, stretch.Checkpoints[n-1].Note
		}
		if !more {
			return nil
		}
	}
}

// next returns what is sent next, and whether there is more.
func (s *CopySender) next(ctx context.Context) (stretch Stretch, more bool, err error) {
	stretch = Stretch{Worker: s.worker, Size: s.end.Size}
	size := 0
	rewritten := event.Seq(0)
	for e, err := range s.log.Events(ctx, event.Query{After: event.Seq(s.end.Size), Limit: sendEvents}) {
		if err != nil {
			return stretch, false, err
		}
		if int64(e.Seq) != s.end.Size+int64(len(stretch.Events))+1 {
			return stretch, false, fmt.Errorf("hub: event %d of the log is missing: 'perlica log verify' says more", s.end.Size+int64(len(stretch.Events))+1)
		}
		if e.Type == event.LogRewritten {
			rewritten = e.Seq
		}
		stretch.Events = append(stretch.Events, e)
		if size += len(e.Payload); size >= sendBytes {
			break
		}
	}
	if rewritten > 0 {
		if err := s.gone(ctx, rewritten, &stretch); err != nil {
			return stretch, false, err
		}
	}
	if size >= sendBytes || len(stretch.Events) == sendEvents {
		return stretch, true, nil
	}
	return stretch, false, s.checkpoints(ctx, &stretch)
}

// gone adds what was removed from the log up to an event that says that it was: it goes from the copy with that event.
func (s *CopySender) gone(ctx context.Context, until event.Seq, stretch *Stretch) error {
	for e, err := range s.log.Events(ctx, event.Query{Until: until, Gone: true}) {
		if err != nil {
			return err
		}
		stretch.Gone = append(stretch.Gone, int64(e.Seq))
		switch {
		case e.Type == event.MessageReceived && e.Input != "":
			stretch.Inputs = append(stretch.Inputs, string(e.Input))
		case e.Type.Outcome() && e.Run != "":
			stretch.Runs = append(stretch.Runs, string(e.Run))
		case e.Type == event.InteractionRequested && e.Interaction != "":
			stretch.Questions = append(stretch.Questions, string(e.Interaction))
		}
	}
	return nil
}

// checkpoints adds the signed checkpoints that the copy lacks and has all events for.
func (s *CopySender) checkpoints(ctx context.Context, stretch *Stretch) error {
	list, err := s.log.Checkpoints(ctx, s.end.Checkpoint)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Size <= s.end.Size+int64(len(stretch.Events)) {
			stretch.Checkpoints = append(stretch.Checkpoints, c)
		}
	}
	return nil
}
