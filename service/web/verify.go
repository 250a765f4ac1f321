package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/report"
)

// verified is the result of the verification of a log.
type verified struct {
	place
	File        string           `json:"file"`
	OK          bool             `json:"ok"`
	Events      int64            `json:"events"`
	Root        string           `json:"root,omitempty"`
	FirstBad    event.Seq        `json:"first_bad_seq,omitempty"`
	Kind        verify.Damage    `json:"kind,omitempty"`
	Damage      string           `json:"damage,omitempty"`
	Signed      int64            `json:"signed_events"`
	Checkpoints int              `json:"checkpoints"`
	Anchors     int              `json:"anchors"`
	Pruned      int64            `json:"pruned_payloads,omitempty"`
	Withheld    int64            `json:"withheld_payloads,omitempty"`
	Absent      int64            `json:"absent_events,omitempty"`
	Findings    []verify.Finding `json:"findings,omitempty"`
	More        int              `json:"more_findings,omitempty"`
	Open        []event.RunID    `json:"open_runs,omitempty"`
	Warnings    []string         `json:"warnings,omitempty"`
}

func (s *Server) verify(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	l, err := s.named(r)
	if err != nil {
		return err
	}
	if err := l.requireOwn(verifyTeam); err != nil {
		return err
	}
	done, err := s.takeTurn(r.Context())
	if err != nil {
		return err
	}
	defer done()
	v := verified{place: l.place, File: l.used.Log}
	log, err := store.OpenReader(r.Context(), v.File) // reads the file as it is on disk now
	if err == nil {
		err = v.checkLog(r, l, log)
		err = errors.Join(err, log.Close())
	}
	if errors.Is(err, disk.ErrCorrupt) {
		v.OK, v.Findings, err = false, []verify.Finding{verify.NewFinding(0, verify.Unreadable, message.Of(err))}, nil
	}
	if err != nil {
		return err
	}
	v.localize(say(r.Context()))
	return reply(w, http.StatusOK, v)
}

// takeTurn waits until no other request reads a whole log. The caller calls "done" at the end of its own reading.
func (s *Server) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case s.verifying <- struct{}{}:
		return func() { <-s.verifying }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.stopping:
		return nil, stoppingNow.problem(nil)
	}
}

// localize translates the findings. The first finding becomes the damage of the result.
func (v *verified) localize(say *language.Sentences) {
	for i := range v.Findings {
		f := &v.Findings[i]
		f.What = say.Read(f.What, f.Coded)
	}
	if len(v.Findings) > 0 {
		v.Kind, v.Damage = v.Findings[0].Kind, v.Findings[0].What
	}
}

// checkLog verifies an open log with the user's own keys.
func (v *verified) checkLog(r *request, l *eventLog, log *store.Reader) error {
	audit := &report.Audit{}
	opt := verify.Options{Audit: audit, NoImport: true}
	keys, err := evidence.ReadKeys(l.opt.Dirs.KeyDir())
	if origin, oerr := log.Origin(r.Context()); err == nil && oerr == nil && origin != "" {
		opt.Keys = keys.Verifiers(origin)
		opt.Signers = opt.Keys
	}
	if err != nil {
		v.Warnings = append(v.Warnings, say(r.Context()).Say(keysUnused.With(err)))
	}
	rep, err := verify.Log(r.Context(), log, opt)
	if err != nil {
		return err
	}
	v.OK, v.Events, v.FirstBad = rep.OK(), rep.Events, rep.FirstBad
	if rep.Root != [len(rep.Root)]byte{} {
		v.Root = rep.Root.String()
	}
	v.Signed, v.Checkpoints, v.Anchors = rep.Signed, rep.Checkpoints, rep.Anchors
	v.Pruned, v.Withheld, v.Absent = rep.Pruned, rep.Withheld, rep.Absent
	v.Findings, v.More, v.Open = rep.Findings, rep.More, audit.Open()
	for _, w := range rep.Warnings {
		v.Warnings = append(v.Warnings, say(r.Context()).Say(w))
	}
	return nil
}

// noEvent returns the error for a missing event. The parameter "ref" is the event's name in the request, and the error
// repeats it.
func noEvent(err error, ref string) error {
	if errors.Is(err, disk.ErrNotExist) {
		return notFound.problem(noSuchEvent.With(ref))
	}
	return err
}

// proving returns the log that the request names, and its reader. For the copy of a worker's log it returns an error,
// because only the worker itself can prove its log.
func (s *Server) proving(ctx context.Context, where place) (*eventLog, *store.Reader, error) {
	l, err := s.oneNamed(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	if err := l.requireOwn(workerProves); err != nil {
		return nil, nil, err
	}
	log, err := l.openReader(ctx)
	if err == nil && log == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	return l, log.(*store.Reader), nil
}

func (s *Server) proof(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	_, log, err := s.proving(r.Context(), r.where())
	if err != nil {
		return err
	}
	ref := r.PathValue("event")
	n, err := strconv.ParseInt(ref, 10, 64)
	seq := event.Seq(n)
	if err != nil || n <= 0 {
		if seq, err = log.Find(r.Context(), ref); err != nil {
			return noEvent(err, ref)
		}
	}
	p, err := eventlog.Prove(r.Context(), log, seq)
	if errors.Is(err, eventlog.ErrNoCheckpoint) {
		return unfit.problem(runsEndMakes.With(err))
	}
	if err != nil {
		return noEvent(err, ref)
	}
	text, err := p.MarshalText()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="event-`+strconv.FormatInt(int64(seq), 10)+`.tlog-proof"`)
	// A failure means that the client has gone, and then nobody needs the answer.
	_, _ = w.Write(text)
	return nil
}
