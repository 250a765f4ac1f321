package team

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/budget"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/team/hub"
)

// byStrictness lists the modes, the strictest first.
var byStrictness = []policy.Mode{policy.ModeDeny, policy.ModeAsk, policy.ModeReads, policy.ModeAllow}

// capped returns the stricter of two modes. An input may ask for a mode, but the result is never looser than the
// worker's own mode.
func capped(asked string, own policy.Mode) policy.Mode {
	if i := slices.Index(byStrictness, policy.Mode(asked)); i >= 0 && i < slices.Index(byStrictness, own) {
		return policy.Mode(asked)
	}
	return own
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// A refusal is the reason why no call is made for an input. The claim stays, and the worker does
// not look at the input again.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// workOn brings a claim of this worker to its outcome, as far as that is possible now. The claim is
// recorded first. The run then records its intent before its call. The report comes last. If the
// work is interrupted, findClaims continues it from the state of the log.
func (w *Worker) workOn(ctx context.Context, c hub.Claim, stop chan fact.Stop) {
	lock, err := filelock.Acquire(filelock.Input(filepath.Join(filepath.Dir(w.t.Log().Path()), "locks"), c.ID))
	if errors.Is(err, filelock.ErrHeld) {
		// Another process of this worker holds the input's lock and does the work.
		return
	}
	if err == nil {
		defer lock.Release()
		err = w.advanceClaim(ctx, c, stop)
	}
	if err != nil && ctx.Err() == nil {
		w.opt.Note(fmt.Sprintf("%s: %v; it stays with this worker", c.ID, err))
	}
}

// advanceClaim does the work under the input's lock. An error leaves the claim unchanged.
func (w *Worker) advanceClaim(ctx context.Context, c hub.Claim, stop chan fact.Stop) error {
	known, err := w.known(ctx, c)
	if known || err != nil {
		return err
	}
	id := event.InputID(c.ID)
	_, err = w.t.Log().AppendUnless(ctx, event.Query{Types: []event.Type{event.TeamClaimed}, Input: id},
		event.NewFact(event.TeamClaimed, "perlica", event.Refs{Input: id}, fact.TeamClaimed{
			Generation: c.Generation, Position: c.Position, Sender: c.Sender, Project: c.Project, Digest: c.Digest,
			Signature: c.Signature,
		}))
	var there *eventlog.ConflictError
	// A conflict is no error: an earlier process of this worker has recorded the claim.
	if err != nil && !errors.As(err, &there) {
		return err
	}
	s, t, err := w.turnOf(ctx, c)
	if err == nil {
		t.Stop = stop
		t.Show = w.showQuestions(c, s.r)
		w.opt.Note(fmt.Sprintf("%s: from %s", c.ID, c.Sender))
		var res record.Result
		if res, err = s.r.Run(ctx, t); err == nil {
			w.reportResult(c, res)
			return nil
		}
		var input *kernel.InputError
		var other *kernel.InputConflictError
		var stopped *kernel.StoppedError
		var budget *budget.RefusedError
		if errors.As(err, &input) || errors.As(err, &budget) || errors.As(err, &other) ||
			errors.As(err, &stopped) && ctx.Err() == nil {
			err = refusal{err}
		}
	}
	var refused refusal
	if errors.As(err, &refused) {
		return w.refuseInput(ctx, c, refused.error)
	}
	return err
}

// known reports whether the log has the outcome or the refusal of an input. If the log has an
// intent without an outcome and its process is gone, known records an unknown outcome.
func (w *Worker) known(ctx context.Context, c hub.Claim) (bool, error) {
	res, ok, err := w.t.r.Recorded(ctx, event.InputID(c.ID))
	switch {
	case errors.Is(err, kernel.ErrInputRunning):
		return true, nil
	case err != nil:
		return false, err
	case ok:
		w.reportResult(c, res)
		return true, nil
	}
	e, ok, err := w.t.Log().Last(ctx, event.Query{Types: []event.Type{event.TeamRefused}, Input: event.InputID(c.ID)})
	if err != nil || !ok {
		return false, err
	}
	var r fact.TeamRefused
	if err := e.Decode(&r); err != nil {
		return false, err
	}
	w.reportRefusal(c, errors.New(r.Why))
	return true, nil
}

// refuseInput records that no call is made for an input, and reports it.
func (w *Worker) refuseInput(ctx context.Context, c hub.Claim, why error) error {
	if _, called, err := w.t.Log().Intent(ctx, event.InputID(c.ID)); called || err != nil {
		// There was a call after all. Its outcome counts, and findClaims reports it.
		return err
	}
	_, err := w.t.Log().Append(ctx, event.NewFact(event.TeamRefused, "perlica", event.Refs{Input: event.InputID(c.ID)},
		fact.TeamRefused{Why: why.Error()}))
	if err != nil {
		return err
	}
	w.reportRefusal(c, why)
	return nil
}

func (w *Worker) reportRefusal(c hub.Claim, why error) {
	w.opt.Note(fmt.Sprintf("%s: refused: %v", c.ID, why))
	w.queueReport(c, hub.Refused, streamjson.NewResult(record.Result{Input: event.InputID(c.ID)}, why, "perlica"))
}

func (w *Worker) reportResult(c hub.Claim, res record.Result) {
	w.opt.Note(fmt.Sprintf("%s: %s (%s)", c.ID, res.Outcome, res.Duration.Round(time.Millisecond)))
	res.Replayed = false // for the team it is the result of this claim, even if an earlier process made the call
	w.queueReport(c, string(res.Outcome), streamjson.NewResult(res, nil, ""))
}

func (w *Worker) queueReport(c hub.Claim, outcome string, result streamjson.Result) {
	b := w.kept(result)
	w.outbox.addReport(func(ctx context.Context) error {
		signature, err := w.t.signText(hub.OutcomeText(w.t.State().ID, c.ID, w.me.Name, outcome, hub.Hash(b)))
		if err != nil {
			return err
		}
		return w.t.Hub.Report(ctx, w.me.Name, c.ID, outcome, b, signature)
	})
}

// kept returns the JSON of v, masked as on the log, for the hub.
func (w *Worker) kept(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain fields, or values decoded from JSON
	}
	return w.t.Log().Kept(b)
}

// turnOf returns the project and the turn that answer a claim. It uses only the parts that the sender signed. If the
// signature is not valid, the error is a refusal.
func (w *Worker) turnOf(ctx context.Context, c hub.Claim) (s served, t kernel.Turn, err error) {
	if err := w.verifyInput(ctx, &c.Input); err != nil {
		return s, t, err
	}
	s, ok := w.served[c.Project]
	if !ok {
		return s, t, errors.New("the project " + c.Project + " is not served here any more")
	}
	payload := [][]byte{c.Text} // a short text came with the claim
	if !matches(&c.Input, payload) {
		if payload, err = w.t.Hub.Fetch(ctx, c.ID, MaxInput); err != nil {
			return s, t, err
		}
	}
	if !matches(&c.Input, payload) {
		return s, t, refusal{errors.New("its text or attachments are not what its sender signed")}
	}
	session, err := w.session(ctx, s, &c.Input)
	if err != nil {
		return s, t, err
	}
	agent, err := s.p.Agent(project.Choice{Provider: c.Provider}, session)
	if err != nil {
		return s, t, refusal{err}
	}
	t = kernel.Turn{Setup: s.p.Setup(project.Choice{}, agent, session), Wait: true}
	t.Input = kernel.Input{ID: event.InputID(c.ID), Text: string(payload[0]), Source: "team", Sender: c.Sender}
	t.Permissions = capped(c.Permissions, s.p.Mode())
	if _, t.AnswerIn = s.p.Answering(true, 0); t.Permissions == policy.ModeDeny {
		t.AnswerIn = 0
	}
	t.Forms = t.AnswerIn > 0
	dir := filepath.Join(filepath.Dir(w.t.Log().Path()), "files")
	for i, a := range c.Attachments {
		path, err := attachment.Save(dir, c.ID, i, a.Name, bytes.NewReader(payload[1+i]), MaxInput)
		if err != nil {
			return s, t, err
		}
		t.Input.Attachments = append(t.Input.Attachments, path)
	}
	return s, t, nil
}

// session returns the session that an input continues. The zero Session means a new session. If the session does not
// belong to the project on this worker's log, the error is a refusal.
func (w *Worker) session(ctx context.Context, s served, in *hub.Input) (found sessions.Session, err error) {
	switch in.Worker {
	case "":
		return found, nil
	case w.me.Name:
	default:
		// No sender asks for this: somebody changed the row on the hub.
		return found, refusal{fmt.Errorf("it goes on with a session of %s, and was given to %s", in.Worker, w.me.Name)}
	}
	view, err := s.r.Sessions(ctx)
	if err != nil {
		return found, err
	}
	found, err = view.Find(ctx, in.Session)
	if err = errors.Join(err, view.Close()); errors.Is(err, sessions.ErrNoSession) || err == nil &&
		string(found.ID) != in.Session {
		return found, refusal{fmt.Errorf("%w: %s", sessions.ErrNoSession, in.Session)}
	}
	if err != nil {
		return found, err
	}
	project, err := projectOf(ctx, w.t.Log(), found.ID)
	if err == nil && project != in.Project {
		err = refusal{fmt.Errorf("the session %s is not one of the project %s", in.Session, in.Project)}
	}
	return found, err
}

// projectOf returns the project of a session in a worker's log or its copy: the project of the
// session's last input. It is empty for a session that did not come from the team.
func projectOf(ctx context.Context, log interface {
	Last(ctx context.Context, q event.Query) (event.Event, bool, error)
}, id event.SessionID) (string, error) {
	e, ok, err := log.Last(ctx, event.Query{Session: id, Types: []event.Type{event.MessageReceived}})
	if err == nil && ok {
		e, ok, err = log.Last(ctx, event.Query{Input: e.Input, Types: []event.Type{event.TeamClaimed}})
	}
	if err != nil || !ok || e.Withheld != "" {
		return "", err
	}
	var c fact.TeamClaimed
	err = e.Decode(&c)
	return c.Project, err
}

// verifyInput checks an input's signature. An unknown sender may have joined a moment ago.
func (w *Worker) verifyInput(ctx context.Context, in *hub.Input) error {
	if _, ok := w.t.member(in.Sender); !ok {
		if err := w.t.Refresh(ctx); err != nil {
			return err
		}
	}
	key, err := w.t.may(in.Sender, access.Ask)
	if err != nil {
		return refusal{err}
	}
	if !hub.VerifySignature(key, in.Text(w.t.State().ID), in.Signature) {
		return refusal{fmt.Errorf("it is not signed by %s", in.Sender)}
	}
	return nil
}

// matches reports whether the payload has the digests of the input.
func matches(in *hub.Input, payload [][]byte) bool {
	if len(payload) != 1+len(in.Attachments) {
		return false
	}
	for i, a := range in.Attachments {
		if hub.Hash(payload[1+i]) != a.SHA256 {
			return false
		}
	}
	return hub.InputDigest(payload[0], in.Attachments) == in.Digest
}

// showQuestions returns a function that sends the questions of a run to the hub.
func (w *Worker) showQuestions(c hub.Claim, r *kernel.Runner) func(record.Notice) {
	return func(n record.Notice) {
		switch n := n.(type) {
		case record.Asked:
			if !n.Answerable {
				return
			}
			q := hub.Question{ID: string(n.ID), Input: c.ID, Worker: w.me.Name, Question: w.kept(n.Question)}
			w.mu.Lock()
			w.questions[n.ID] = localQuestion{r, n.Question, q.Digest()}
			w.mu.Unlock()
			w.outbox.addReport(func(ctx context.Context) error {
				return w.t.Hub.PutQuestion(ctx, q)
			})
		case record.Closed:
			w.mu.Lock()
			_, ok := w.questions[n.Question.ID]
			delete(w.questions, n.Question.ID)
			w.mu.Unlock()
			if ok {
				w.outbox.addReport(func(ctx context.Context) error {
					return w.t.Hub.CloseQuestion(ctx, w.me.Name, string(n.Question.ID), w.kept(QuestionEnd{n.Answer, n.Reason}))
				})
			}
		}
	}
}

// QuestionEnd is the end of a question as the hub stores it.
type QuestionEnd struct {
	Answer *interaction.Answer `json:"answer,omitempty"`
	Reason interaction.Reason  `json:"reason,omitempty"`
}
