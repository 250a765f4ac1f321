package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/attachment"
)

// source names this front end on the record.
const source = "web"

// inputBodyJSON is the body of a request that sends an input.
type inputBodyJSON struct {
	place
	ID          string `json:"id"`
	Session     string `json:"session"`
	Provider    string `json:"provider"`
	Text        string `json:"text"`
	Attachments []struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	} `json:"attachments"`
	Permissions string `json:"permissions"`
	Model       string `json:"model"`
	Mode        string `json:"mode"`
	Dir         string `json:"dir"`
	Wait        bool   `json:"wait"`
}

// These constants limit an input. They are the bytes of its text, the number of its attachments, their bytes together,
// and the bytes of an id or a name.
const (
	maxText        = 4_000_000
	maxAttachments = 20
	maxAttached    = 16 << 20
	maxID          = 200
)

// mostInputs limits the number of inputs that are running or waiting.
const mostInputs = 100

// checkFields returns the first fault of the input's fields.
func (in *inputBodyJSON) checkFields() error {
	attached, named := 0, true
	for _, a := range in.Attachments {
		attached += len(a.Data)
		named = named && a.Name != "" && len(a.Name) <= maxID
	}
	switch {
	case in.Project == "":
		return badRequest.problem(projectMissing)
	case strings.TrimSpace(in.Text) == "" || len(in.Text) > maxText || !utf8.ValidString(in.Text):
		return badRequest.problem(badText)
	case len(in.ID) > maxID || strings.ContainsFunc(in.ID, func(r rune) bool { return r < '!' || r > '~' }):
		return badRequest.problem(badInputID)
	case len(in.Attachments) > maxAttachments || !named:
		return badRequest.problem(badAttachments.With(maxAttachments))
	case attached > maxAttached:
		return tooLarge.problem(largeAttachments.With(maxAttached))
	}
	return kernel.Input{ID: event.InputID(in.ID), Source: source}.CheckID()
}

// fingerprint identifies the content of an input. Two inputs with one id and different fingerprints
// are different inputs.
func (in *inputBodyJSON) fingerprint() string {
	same := *in
	same.Wait, same.place = false, place{}
	b, err := json.Marshal(same)
	if err != nil {
		// Plain fields can always be encoded.
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// sentInput is an input with its sender.
type sentInput struct {
	inputBodyJSON
	fingerprint string
	device      string // the id of the sender's device
	sender      string
	line        bool     // the record says that the input waits
	files       []string // the paths of its attachments
}

// inputs holds the inputs that have no result yet.
type inputs struct {
	mu      sync.Mutex
	pending map[inputKey]*pendingInput
}

type inputKey struct {
	at place
	id event.InputID
}

// pendingInput is an input without a result. All requests that send the same input share it. The fields after each
// channel may be read after the channel was closed.
type pendingInput struct {
	id          event.InputID
	fingerprint string

	once sync.Once
	// accepted is closed when the run has started or the input waits for another turn.
	accepted chan struct{}
	queued   bool
	session  event.SessionID
	run      event.RunID

	// over is closed when res and err are set.
	over chan struct{}
	res  record.Result
	err  error
}

// markAccepted records that the input's call is running or waits.
func (f *pendingInput) markAccepted(session event.SessionID, run event.RunID, queued bool) {
	f.once.Do(func() {
		f.session, f.run, f.queued = session, run, queued
		close(f.accepted)
	})
}

func (s *Server) input(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
		return err
	}
	var in inputBodyJSON
	if err := r.decode(&in); err != nil {
		return err
	}
	if keys := r.Header["Idempotency-Key"]; len(keys) > 0 {
		key := keys[0]
		if len(keys) > 1 || key == "" || in.ID != "" && in.ID != key {
			return badRequest.problem(severalIDs)
		}
		in.ID = key
	}
	if err := in.checkFields(); err != nil {
		return err
	}
	l, err := s.logs.oneLog(r.Context(), in.place)
	if err != nil {
		return err
	}
	in.ID = cmp.Or(in.ID, uuid.Must(uuid.NewV7()).String())
	f, err := s.joinInput(l, &sentInput{
		inputBodyJSON: in, fingerprint: in.fingerprint(), device: r.visitor.ID, sender: r.visitor.Label(),
	})
	if err != nil {
		return err
	}
	accepted := f.accepted
	if in.Wait {
		accepted = nil
	}
	select {
	case <-accepted:
	case <-f.over:
	case <-s.opt.Devices.Revoked(r.visitor.ID):
		// A revoked device must not learn the result of its input.
		return unauthorized.wrap(errRevoked)
	case <-r.Context().Done():
		// The client has gone, but the run continues.
		return nil
	}
	return f.writeReply(r.Context(), w, l)
}

// writeReply writes the known state of the input.
func (f *pendingInput) writeReply(ctx context.Context, w http.ResponseWriter, l *eventLog) error {
	answer := struct {
		place
		Input   event.InputID      `json:"input_id"`
		Session event.SessionID    `json:"session_id"`
		Run     event.RunID        `json:"run_id,omitempty"`
		State   string             `json:"state"`
		Result  *streamjson.Result `json:"result,omitempty"`
	}{place: l.place, Input: f.id}
	select {
	case <-f.over:
	default:
		if answer.Session, answer.Run, answer.State = f.session, f.run, running; f.queued {
			answer.State = "queued"
		}
		return reply(w, http.StatusAccepted, answer)
	}
	var other *underWay
	switch {
	case errors.As(f.err, &other):
		answer.Session, answer.Run, answer.State = other.Session, other.Run, running
		return reply(w, http.StatusAccepted, answer)
	case f.err != nil:
		p := *asProblem(f.err)
		p.Project, p.Context, p.Input = l.Project, l.Context, string(f.id)
		return &p
	}
	answer.Session, answer.Run, answer.State = f.res.Session, f.res.Run, ended
	answer.Result = localizedResult(ctx, streamjson.NewResult(f.res, nil, ""))
	return reply(w, http.StatusOK, answer)
}

// underWay says that another process is running the input's call.
type underWay struct{ event.Refs }

func (*underWay) Error() string { return kernel.ErrInputRunning.Error() }

// joinInput returns the pending input of an id. If it does not exist, joinInput starts it.
func (s *Server) joinInput(l *eventLog, in *sentInput) (*pendingInput, error) {
	select {
	case <-s.stopping:
		return nil, stoppingNow.problem(nothingSent)
	default:
	}
	key := inputKey{l.place, event.InputID(in.ID)}
	s.inputs.mu.Lock()
	defer s.inputs.mu.Unlock()
	if f := s.inputs.pending[key]; f != nil {
		if f.fingerprint != in.fingerprint {
			return nil, in.differs()
		}
		return f, nil
	}
	if len(s.inputs.pending) >= mostInputs {
		return nil, tooMany.problem(manyInputs.With(mostInputs))
	}
	f := &pendingInput{id: key.id, fingerprint: in.fingerprint, accepted: make(chan struct{}), over: make(chan struct{})}
	s.inputs.pending[key] = f
	s.turns.Go(func() {
		res, err := s.answerInput(f, l, in)
		f.res, f.err = res, err
		s.inputs.mu.Lock()
		delete(s.inputs.pending, key)
		s.inputs.mu.Unlock()
		close(f.over)
	})
	return f, nil
}

// differs returns the error that another input has this id.
func (in *sentInput) differs() error {
	p := inputDiffers.problem(otherInput)
	p.Input = in.ID
	return p
}

// answerInput runs the input, or finds the recorded result of an earlier run.
func (s *Server) answerInput(f *pendingInput, l *eventLog, in *sentInput) (record.Result, error) {
	r, p, err := l.openRunner(s.hard)
	if err != nil {
		return record.Result{}, err
	}
	t := kernel.Turn{
		Input: kernel.Input{ID: event.InputID(in.ID), Text: in.Text, Source: source, Sender: in.sender}, Wait: true,
		Show: func(n record.Notice) {
			if started, ok := n.(record.Started); ok {
				f.markAccepted(started.Session, started.Run, false)
			}
		},
	}
	if t.Permissions, err = tightened(p, in.Permissions); err != nil {
		return record.Result{}, err
	}
	if _, t.AnswerIn = p.Answering(true, 0); t.Permissions == policy.ModeDeny {
		t.AnswerIn = 0
	}
	intent, called, err := r.Log().Intent(s.hard, t.Input.ID)
	if lost := (*eventlog.LostIntentError)(nil); errors.As(err, &lost) {
		// The log lost its record of this input's call, and the prompt may have left. Run therefore starts no agent and
		// reports an unknown outcome.
		return r.Run(s.hard, t)
	}
	if err != nil {
		return record.Result{}, err
	}
	if called && in.Session != "" && event.SessionID(in.Session) != intent.Session {
		return record.Result{}, inputDiffers.problem(otherSession)
	}
	if err := in.findInLine(s.hard, r); err != nil {
		return record.Result{}, err
	}
	dir, err := below(p, in.Dir)
	if err != nil {
		return record.Result{}, err
	}
	if !in.line {
		if in.files, err = attached(p, in.inputBodyJSON); err != nil {
			return record.Result{}, err
		}
	}
	t.Input.Attachments = in.files
	if called {
		// The turn names no agent, because Run only returns the recorded result.
		res, err := r.Run(s.hard, t)
		if errors.Is(err, kernel.ErrInputRunning) {
			err = &underWay{intent.Refs}
		}
		return res, err
	}
	return s.runInput(f, l, in, dir, t)
}

// runInput answers an input in a conversation.
func (s *Server) runInput(
	f *pendingInput, l *eventLog, in *sentInput, dir string, t kernel.Turn,
) (record.Result, error) {
	at := sessionKey{l.place, event.SessionID(in.Session)}
	k, err := s.liveSessions.acquireSession(s.hard, l, at, in.Provider, dir)
	if err != nil {
		return record.Result{}, err
	}
	defer s.liveSessions.releaseSession(k)
	for _, place := range []chan struct{}{k.turnSem, s.slots} {
		if err := s.waitForPlace(f, l, in, k, place); err != nil {
			return record.Result{}, err
		}
		defer func() { <-place }()
	}
	defer s.leaveLine(k, in)
	// The device may have been revoked during the wait.
	if _, ok := s.opt.Devices.Find(in.device); !ok {
		return record.Result{}, unfit.problem(revokedWaiting)
	}
	s.liveSessions.makeRoom(k)
	if err := s.chooseOffers(k, in.inputBodyJSON); err != nil {
		return record.Result{}, err
	}
	defer s.learnOffers(l.place, k)
	res, err := k.conv.Run(s.hard, t)
	if errors.Is(err, kernel.ErrInputRunning) {
		if intent, ok, ierr := k.runner.Log().Intent(context.WithoutCancel(s.hard), t.Input.ID); ok && ierr == nil {
			err = &underWay{intent.Refs}
		}
	}
	return res, err
}

// below returns the working directory that an input asks for. It must be the project's directory or
// below it, after all links are resolved.
func below(p *project.Project, dir string) (string, error) {
	if dir == "" || dir == "." {
		return "", nil
	}
	if !filepath.IsLocal(dir) {
		return "", forbidden.problem(absoluteDir)
	}
	root, err := filepath.EvalSymlinks(p.Workspace.Root)
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(filepath.Join(root, dir))
	if err != nil {
		return "", unfit.problem(noDir)
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", forbidden.problem(outerDir)
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", unfit.problem(notDir)
	}
	return full, nil
}

// attached writes the attachments into files of the project and returns their paths. Different
// contents have different paths.
func attached(p *project.Project, in inputBodyJSON) (paths []string, err error) {
	if len(in.Attachments) == 0 {
		return nil, nil
	}
	own, err := p.Workspace.EnsureService()
	if err != nil {
		return nil, err
	}
	for i, a := range in.Attachments {
		sum := sha256.Sum256(a.Data)
		path, err := attachment.Save(own.Files, in.ID+"\x00"+hex.EncodeToString(sum[:]), i, a.Name, bytes.NewReader(a.Data),
			maxAttached)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
