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

// A ForkError says that a worker's log and its copy have different versions of an event. The log was rewritten or
// restored from a backup, or two cloned machines share it, or the copy was edited. The worker cannot find out the
// cause. No process may continue, because a log without its intents would repeat calls.
type ForkError struct {
	Worker string
	Seq    event.Seq // the first difference is at this event or at an earlier one
	What   string    // how the difference was found
}

func (e *ForkError) Error() string {
	return fmt.Sprintf(
		"the log of %s is not the one that the hub has a copy of: %s. It was rewritten, or put back from a backup, or two "+
			"machines have it, one a clone of the other, or somebody edited the copy. Nothing more is taken under this name",
		e.Worker, e.What)
}

// Hint returns the remedy.
func (e *ForkError) Hint() string {
	return "see 'Copies' in docs/team.md: a clone, or a log from a backup, joins as another machine"
}

// A batch ends at the first of these limits.
const (
	sendEvents = 1000
	sendBytes  = 4 << 20
)

// CopySender keeps the copy of a worker's log up to date. One goroutine uses it.
type CopySender struct {
	hub    *Hub
	log    *store.Reader
	worker string
	known  bool // the hub has registered the worker's log
	end    Copy // the last known state of the copy
}

// NewCopySender prepares to send the log of a worker. The hub should be a separate connection,
// because a batch can take long.
func NewCopySender(h *Hub, log *store.Reader, worker string) *CopySender {
	return &CopySender{hub: h, log: log, worker: worker}
}

// Check compares the log with its copy: the last event of the copy, and the root of its newest checkpoint. The error is
// a *ForkError if they differ, or if another process of the worker found a difference. It is ErrOtherLog if the
// worker's name belongs to another log.
func (s *CopySender) Check(ctx context.Context) error {
	origin, err := s.log.Origin(ctx)
	if err != nil {
		return err
	}
	// The copy is read before the log, so the log has all events of the copy.
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

// compare returns a *ForkError if the log's history differs from the copy's, otherwise nil.
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
		// This checkpoint cannot be read or belongs to another log. It proves nothing about the worker's log, and a
		// keeper reports it.
		return nil, nil
	}
	if err := s.log.IsOwn(ctx, c); errors.Is(err, evidence.ErrCheckpoint) {
		return fork(c.Size, "its first %d events have another root than in the checkpoint that is there", c.Size)
	} else if err != nil {
		return nil, err
	}
	return nil, nil
}

// Send calls Check and sends the missing part of the copy. After a nil error the copy contains the
// log as it was when Send began, with its checkpoints. Send may be interrupted at any time. The
// next call continues at the end of the copy.
func (s *CopySender) Send(ctx context.Context) error {
	if err := s.Check(ctx); err != nil {
		return err
	}
	for {
		batch, more, err := s.nextBatch(ctx)
		if err != nil || len(batch.Events) == 0 && len(batch.Checkpoints) == 0 {
			return err
		}
		switch err := AppendCopy(ctx, s.hub, batch); {
		case errors.Is(err, errMoved): // another process of this worker, or a clone, sends
			if err := s.Check(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if n := len(batch.Events); n > 0 {
			last := &batch.Events[n-1]
			s.end.Size, s.end.Leaf = int64(last.Seq), bytes.Clone(last.LeafHash[:])
		}
		if n := len(batch.Checkpoints); n > 0 {
			s.end.Checkpoint, s.end.Note = batch.Checkpoints[n-1].Size, batch.Checkpoints[n-1].Note
		}
		if !more {
			return nil
		}
	}
}

// nextBatch returns the next batch and whether there is more.
func (s *CopySender) nextBatch(ctx context.Context) (batch Batch, more bool, err error) {
	batch = Batch{Worker: s.worker, Size: s.end.Size}
	size := 0
	rewritten := event.Seq(0)
	for e, err := range s.log.Events(ctx, event.Query{After: event.Seq(s.end.Size), Limit: sendEvents}) {
		if err != nil {
			return batch, false, err
		}
		if int64(e.Seq) != s.end.Size+int64(len(batch.Events))+1 {
			return batch, false, fmt.Errorf("hub: event %d of the log is missing: 'perlica log verify' says more",
				s.end.Size+int64(len(batch.Events))+1)
		}
		if e.Type == event.LogRewritten {
			rewritten = e.Seq
		}
		batch.Events = append(batch.Events, e)
		if size += len(e.Payload); size >= sendBytes {
			break
		}
	}
	if rewritten > 0 {
		if err := s.addGone(ctx, rewritten, &batch); err != nil {
			return batch, false, err
		}
	}
	if size >= sendBytes || len(batch.Events) == sendEvents {
		return batch, true, nil
	}
	return batch, false, s.addCheckpoints(ctx, &batch)
}

// addGone adds removed content to the batch. The content belongs to events before the event number "until". That event
// records the removal. The copy loses the content when it gets that event.
func (s *CopySender) addGone(ctx context.Context, until event.Seq, batch *Batch) error {
	for e, err := range s.log.Events(ctx, event.Query{Until: until, Gone: true}) {
		if err != nil {
			return err
		}
		batch.Gone = append(batch.Gone, int64(e.Seq))
		switch {
		case e.Type == event.MessageReceived && e.Input != "":
			batch.Inputs = append(batch.Inputs, string(e.Input))
		case e.Type.Outcome() && e.Run != "":
			batch.Runs = append(batch.Runs, string(e.Run))
		case e.Type == event.InteractionRequested && e.Interaction != "":
			batch.Questions = append(batch.Questions, string(e.Interaction))
		}
	}
	return nil
}

// addCheckpoints adds the missing signed checkpoints if all their events are in the copy.
func (s *CopySender) addCheckpoints(ctx context.Context, batch *Batch) error {
	list, err := s.log.Checkpoints(ctx, s.end.Checkpoint)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Size <= s.end.Size+int64(len(batch.Events)) {
			batch.Checkpoints = append(batch.Checkpoints, c)
		}
	}
	return nil
}
