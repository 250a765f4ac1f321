package web

import (
	"context"
	"errors"
	"slices"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/queue"
)

// findInLine looks for the input in the line, which is the list of waiting inputs on the log. If the line has the
// input, findInLine sets the session and the attachments that the log has for it. findInLine returns an error if
// another input waits under the same id.
func (in *sentInput) findInLine(ctx context.Context, r *kernel.Runner) error {
	waits, ok, err := queue.Find(ctx, &r.Log().Reader, event.InputID(in.ID))
	if err != nil || !ok {
		return err
	}
	if waits.Web == nil || waits.Web.SHA256 != in.fingerprint {
		return in.differs()
	}
	in.line, in.Session, in.files = true, string(waits.Session), waits.Attachments
	return nil
}

// waitForPlace occupies one place of a semaphore. If no place is free at once, it first records that the input waits.
func (s *Server) waitForPlace(f *pendingInput, l *eventLog, in *sentInput, k *liveSession, place chan struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	default:
	}
	if err := in.enterLine(s.hard, l, k); err != nil {
		return err
	}
	f.markAccepted(k.conv.Session(), "", true)
	select {
	case place <- struct{}{}:
		return nil
	case <-s.stopping:
		if in.line {
			return stoppingNow.problem(waitsOnRecord)
		}
		return stoppingNow.problem(nothingSent)
	}
}

// enterLine records that the input waits in the session, unless the record says so already. An input with a text that
// the log masks waits only in memory, because a later server could not read its text.
func (in *sentInput) enterLine(ctx context.Context, l *eventLog, k *liveSession) error {
	if in.line {
		return nil
	}
	masked, err := l.masks(in.Text)
	if masked || err != nil {
		return err
	}
	if err := k.conv.RecordSession(); err != nil {
		return err
	}
	_, err = k.runner.Log().Append(ctx, queue.Queued(k.conv.Session(), event.InputID(in.ID), fact.MessageQueued{
		Text: in.Text, Attachments: in.files, Source: source, Sender: in.sender,
		Web: &fact.WebInput{
			Device: in.device, SHA256: in.fingerprint, Provider: in.Provider, Dir: in.Dir, Permissions: in.Permissions,
			Model: in.Model, Mode: in.Mode,
		},
	}))
	in.line = err == nil
	return err
}

// masks reports whether the log would store this text redacted.
func (l *eventLog) masks(text string) (bool, error) {
	p := l.project
	if !p.Config.RedactBeforeHash {
		return false, nil
	}
	redactor, err := p.Redactor()
	return err == nil && redactor.Text(text) != text, err
}

// leaveLine withdraws an input that waits on record and was not called. If the server is stopping, the input stays for
// the next server.
func (s *Server) leaveLine(k *liveSession, in *sentInput) {
	select {
	case <-s.stopping:
		return
	default:
	}
	if !in.line {
		return
	}
	err := queue.Withdraw(context.WithoutCancel(s.hard), k.runner.Log(), k.conv.Session(), event.InputID(in.ID),
		fact.MessageWithdrawn{By: "perlica", Where: source})
	if err != nil && !errors.Is(err, queue.ErrWithdrawn) {
		s.opt.Trail.Warn("an input is not taken out of the line", "input", in.ID, "error", err.Error())
	}
}

// takeUpInputs sends the inputs that still wait on the record of a log, in their order. An earlier server left them.
// Inputs of other front ends are not sent, because each front end sends its own.
func (s *Server) takeUpInputs(l *eventLog) error {
	log, err := l.openReader(s.hard)
	if err != nil || log == nil {
		return err
	}
	if _, ok, err := log.Last(s.hard, event.Query{Types: []event.Type{event.MessageQueued}}); err != nil || !ok {
		return err
	}
	var q queue.Queue
	if err := q.Read(s.hard, log); err != nil {
		return err
	}
	for _, waits := range q.Inputs {
		if waits.Web == nil {
			continue
		}
		f, err := s.joinInput(l, &sentInput{
			inputBodyJSON: inputBodyJSON{
				place: l.place, ID: string(waits.ID), Session: string(waits.Session), Text: waits.Text,
				Provider: waits.Web.Provider, Dir: waits.Web.Dir, Permissions: waits.Web.Permissions,
				Model: waits.Web.Model, Mode: waits.Web.Mode,
			},
			fingerprint: waits.Web.SHA256, device: waits.Web.Device, sender: waits.Sender,
		})
		if err != nil {
			return err
		}
		select { // the next input waits until this input was accepted or is over
		case <-f.accepted:
		case <-f.over:
			if f.err != nil {
				s.opt.Trail.Warn("a waiting input is not sent", "input", string(waits.ID), "error", f.err.Error())
			}
		}
	}
	return nil
}

// waiting returns the ids of the inputs of a session that have no result yet. These are the inputs that this server has
// accepted, and the inputs that wait on record.
func (s *Server) waiting(
	ctx context.Context, l *eventLog, log logReader, session event.SessionID,
) ([]event.InputID, error) {
	list := s.inputs.of(l.place, session)
	q := queue.Queue{Session: session}
	err := q.Read(ctx, log)
	for _, in := range q.Inputs {
		if in.Web != nil && !slices.Contains(list, in.ID) {
			list = append(list, in.ID)
		}
	}
	return list, err
}
