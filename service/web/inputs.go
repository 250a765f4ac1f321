package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/perlica/perlica/kernel/streamjson"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/service/attachment"
	"github.com/perlica/perlica/service/web/device"
)

// source is where an input or an answer came from, as the record has it.
const source = "web"

// inputBodyJSON is an input as it is sent.
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

// What an input may have.
const (
	maxText        = 4_000_000
	maxAttachments = 20
	maxAttached    = 16 << 20
	maxID          = 200
)

// mostInputs is how many inputs may be under way or wait, which they do in memory.
const mostInputs = 100

// check returns what is wrong with the input by itself.
func (in *inputBodyJSON) check() error {
	attached, named := 0, true
	for _, a := range in.Attachments {
		attached += len(a.Data)
		named = named && a.Name != "" && len(a.Name) <= maxID
	}
	switch {
	case in.Project == "":
		return badRequest.is("project is missing")
	case strings.TrimSpace(in.Text) == "" || len(in.Text) > maxText || !utf8.ValidString(in.Text):
		return badRequest.is("text must have something in it, in UTF-8, and not too much")
	case len(in.ID) > maxID || strings.ContainsFunc(in.ID, func(r rune) bool { return r < '!' || r > '~' }):
		return badRequest.is("an input's id is printable ASCII without blanks, 200 bytes at most")
	case len(in.Attachments) > maxAttachments || !named:
		return badRequest.is(fmt.Sprintf("%d attachments at most, each with a name", maxAttachments))
	case attached > maxAttached:
		return tooLarge.is(fmt.Sprintf("the attachments have more than %d bytes", maxAttached))
	}
	return nil
}

// print identifies an input: two of one id with another print are two inputs.
func (in *inputBodyJSON) print() string {
	same := *in
	same.Wait, same.place = false, place{}
	b, err := json.Marshal(same)
	if err != nil {
		panic(err) // it is made of plain fields
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// inputs are those under way.
type inputs struct {
	mu    sync.Mutex
	under map[inputKey]*flight
}

type inputKey struct {
	at place
	id event.InputID
}

// flight is an input under way, for all who send it in the meantime. What stands behind a channel may
// be read when it is closed.
type flight struct {
	id    event.InputID
	print string

	once     sync.Once
	accepted chan struct{} // closed when its run is under way, or it waits for another turn
	queued   bool
	session  event.SessionID
	run      event.RunID

	over chan struct{} // closed when it has a result
	res  kernel.Result
	err  error
}

// accept says that the input's call is under way, or waits.
func (f *flight) accept(session event.SessionID, run event.RunID, queued bool) {
	f.once.Do(func() {
		f.session, f.run, f.queued = session, run, queued
		close(f.accepted)
	})
}

func (s *Server) input(w http.ResponseWriter, r *request) error {
	if err := r.only(); err != nil {
		return err
	}
	var in inputBodyJSON
	if err := r.decode(&in); err != nil {
		return err
	}
	if keys := r.Header["Idempotency-Key"]; len(keys) > 0 {
		key := keys[0]
		if len(keys) > 1 || key == "" || in.ID != "" && in.ID != key {
			return badRequest.is("there are several ids, or an empty one")
		}
		in.ID = key
	}
	if err := in.check(); err != nil {
		return err
	}
	l, err := s.logs.one(r.Context(), in.place)
	if err != nil {
		return err
	}
	f, err := s.join(r, l, in)
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
	case <-s.opt.Devices.Revoked(r.visitor.ID): // of what becomes of it the device learns nothing
		return unauthorized.of(errRevoked)
	case <-r.Context().Done(): // the run goes on
		return nil
	}
	return f.reply(r.Context(), w, l)
}

// reply says what is known of the input.
func (f *flight) reply(ctx context.Context, w http.ResponseWriter, l *eventLog) error {
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

// underWay says that another process has the input's call under way.
type underWay struct{ event.Refs }

func (*underWay) Error() string { return kernel.ErrInputRunning.Error() }

// join returns the flight of an input, which it begins where there is none.
func (s *Server) join(r *request, l *eventLog, in inputBodyJSON) (*flight, error) {
	select {
	case <-s.stopping:
		return nil, stoppingNow.is("nothing was sent")
	default:
	}
	id := event.InputID(cmp.Or(in.ID, uuid.Must(uuid.NewV7()).String()))
	in.ID = string(id)
	key := inputKey{l.place, id}
	s.inputs.mu.Lock()
	defer s.inputs.mu.Unlock()
	if f := s.inputs.under[key]; f != nil {
		if f.print != in.print() {
			p := inputDiffers.is("another input of this id is under way")
			p.Input = in.ID
			return nil, p
		}
		return f, nil
	}
	if len(s.inputs.under) >= mostInputs {
		return nil, tooMany.is(fmt.Sprintf("%d inputs are under way or wait, and nothing was sent", mostInputs))
	}
	f := &flight{id: id, print: in.print(), accepted: make(chan struct{}), over: make(chan struct{})}
	s.inputs.under[key] = f
	visitor := r.visitor
	s.turns.Go(func() {
		res, err := s.fly(f, l, in, visitor)
		f.res, f.err = res, err
		s.inputs.mu.Lock()
		delete(s.inputs.under, key)
		s.inputs.mu.Unlock()
		close(f.over)
	})
	return f, nil
}

// fly has an input answered, or finds out what became of it.
func (s *Server) fly(f *flight, l *eventLog, in inputBodyJSON, visitor device.Visitor) (kernel.Result, error) {
	r, p, err := l.work(s.hard)
	if err != nil {
		return kernel.Result{}, err
	}
	t := kernel.Turn{
		Input: kernel.Input{ID: event.InputID(in.ID), Text: in.Text, Source: source, Sender: visitor.Label()}, Wait: true,
		Show: func(n kernel.Notice) {
			if started, ok := n.(kernel.Started); ok {
				f.accept(started.Session, started.Run, false)
			}
		},
	}
	if t.Permissions, err = tightened(p, in.Permissions); err != nil {
		return kernel.Result{}, err
	}
	if _, t.AnswerIn = p.Answering(true, 0); t.Permissions == policy.ModeDeny {
		t.AnswerIn = 0
	}
	intent, called, err := r.Log().Intent(s.hard, t.Input.ID)
	if lost := (*eventlog.LostIntentError)(nil); errors.As(err, &lost) {
		return r.Run(s.hard, t) // its outcome is unknown, and no agent is started
	}
	if err != nil {
		return kernel.Result{}, err
	}
	if called && in.Session != "" && event.SessionID(in.Session) != intent.Session {
		return kernel.Result{}, inputDiffers.is("it was called in another session")
	}
	dir, err := below(p, in.Dir)
	if err != nil {
		return kernel.Result{}, err
	}
	if t.Input.Attachments, err = attached(p, in); err != nil {
		return kernel.Result{}, err
	}
	if called {
		res, err := r.Run(s.hard, t) // what is recorded: no agent is named, and none is started
		if errors.Is(err, kernel.ErrInputRunning) {
			err = &underWay{intent.Refs}
		}
		return res, err
	}
	return s.turn(f, l, in, dir, t, visitor)
}

// turn answers an input in a conversation.
func (s *Server) turn(f *flight, l *eventLog, in inputBodyJSON, dir string, t kernel.Turn, visitor device.Visitor) (kernel.Result, error) {
	k, err := s.talks.take(s.hard, l, talkKey{l.place, event.SessionID(in.Session)}, in.Provider, dir)
	if err != nil {
		return kernel.Result{}, err
	}
	defer s.talks.put(k)
	for _, place := range []chan struct{}{k.turn, s.slots} {
		if err := s.wait(place, func() { f.accept(k.conv.Session(), "", true) }); err != nil {
			return kernel.Result{}, err
		}
		defer func() { <-place }()
	}
	if _, ok := s.opt.Devices.Find(visitor.ID); !ok { // it waited
		return kernel.Result{}, unfit.is("the device that sent it was revoked while it waited, and nothing was sent")
	}
	s.talks.makeRoom(k)
	if err := s.choose(k, in); err != nil {
		return kernel.Result{}, err
	}
	defer s.learn(l.place, k)
	res, err := k.conv.Run(s.hard, t)
	if errors.Is(err, kernel.ErrInputRunning) {
		if intent, ok, ierr := k.runner.Log().Intent(context.WithoutCancel(s.hard), t.Input.ID); ok && ierr == nil {
			err = &underWay{intent.Refs}
		}
	}
	return res, err
}

// wait takes a place, and calls queued if there is none at once.
func (s *Server) wait(place chan struct{}, queued func()) error {
	select {
	case place <- struct{}{}:
		return nil
	default:
		queued()
	}
	select {
	case place <- struct{}{}:
		return nil
	case <-s.stopping:
		return stoppingNow.is("nothing was sent")
	}
}

// below is the working directory that an input asks for: the project's or one below it, whatever links
// lead there.
func below(p *project.Project, dir string) (string, error) {
	if dir == "" || dir == "." {
		return "", nil
	}
	if !filepath.IsLocal(dir) {
		return "", forbidden.is("the working directory must lie in the project, and is named relative to it")
	}
	root, err := filepath.EvalSymlinks(p.Workspace.Root)
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(filepath.Join(root, dir))
	if err != nil {
		return "", unfit.is("there is no such working directory")
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", forbidden.is("the working directory leads out of the project")
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", unfit.is("the working directory is none")
	}
	return full, nil
}

// attached writes the attachments into files of the project's own, and returns their paths. Those of
// another content have other paths.
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
		path, err := attachment.Save(own.Files, in.ID+"\x00"+hex.EncodeToString(sum[:]), i, a.Name, bytes.NewReader(a.Data), maxAttached)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}
