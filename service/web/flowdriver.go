package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// flowStartJSON is the body of a request that starts or continues a flow run.
type flowStartJSON struct {
	place
	ID          string            `json:"id"`
	Flow        string            `json:"flow"`
	Digest      string            `json:"digest"`
	Inputs      map[string]string `json:"inputs"`
	Permissions string            `json:"permissions"`
	Provider    string            `json:"provider"`
}

// mostFlowRuns limits the number of flow runs that this server drives at the same time.
const mostFlowRuns = 100

// flowRunsHere has the flow runs that this server drives. For other flow runs, faults has the error that stopped them.
type flowRunsHere struct {
	mu     sync.Mutex
	driven map[flowRunKey]*drivenFlow
	faults map[flowRunKey]error
}

type flowRunKey struct {
	at place
	id string
}

// drivenFlow is a flow run that this server drives. All requests that send the same start share it.
type drivenFlow struct {
	fingerprint string
	devices     []string // the ids of the devices that sent the start; flowRunsHere.mu guards them
	once        sync.Once
	begun       chan struct{} // closed when the start is on record
	over        chan struct{} // closed when err is set
	err         error
}

// fault returns the error that stopped a flow run on this server, or nil.
func (h *flowRunsHere) fault(key flowRunKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults[key]
}

// end forgets a driven flow run and keeps its error.
func (h *flowRunsHere) end(key flowRunKey, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.driven, key)
	if len(h.faults) >= mostFlowRuns {
		clear(h.faults)
	}
	if err != nil {
		h.faults[key] = err
	}
}

// flowDriving is a request to start or continue a flow run, with everything that the driver needs.
type flowDriving struct {
	in      flowStartJSON
	file    *flow.Flow
	l       *eventLog
	project *project.Project
	runner  *kernel.Runner
	mode    policy.Mode
	device  string // the id of the sender's device
	sender  string
}

func (s *Server) startFlow(w http.ResponseWriter, r *request) error {
	var in flowStartJSON
	if err := cmp.Or(r.checkParameters(), r.decode(&in)); err != nil {
		return err
	}
	if in.Project == "" {
		return badRequest.problem(projectMissing)
	}
	l, err := s.logs.oneLog(r.Context(), in.place)
	if err != nil {
		return err
	}
	if err := l.requireOwn(onlyWorkerAppends); err != nil {
		return err
	}
	runner, p, err := l.openRunner(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	file, err := in.load(p)
	if err != nil {
		return err
	}
	mode, err := tightened(p, in.Permissions)
	if err != nil {
		return err
	}
	d := &flowDriving{in: in, file: file, l: l, project: p, runner: runner, mode: mode, device: r.visitor.ID,
		sender: r.visitor.Label()}
	switch state, err := d.recorded(r.Context()); {
	case err == nil && state.Finished != nil:
		return reply(w, http.StatusOK, flowRunAccepted{l.place, in.ID, state.Outcome()})
	case err == nil && in.Permissions == "":
		// The flow run goes on with the mode that a person chose at its start.
		if d.mode, err = tightened(p, state.Started.Permissions); err != nil {
			d.mode = policy.ModeDeny // the project has become stricter than that mode
		}
	case err != nil && !errors.Is(err, flow.ErrNoRun):
		return problemOfFlow(err, in.ID)
	}
	f, err := s.joinFlow(d)
	if err != nil {
		return err
	}
	select {
	case <-f.begun:
	case <-f.over:
		if !f.hasBegun() {
			return problemOfFlow(f.err, in.ID)
		}
	case <-s.opt.Devices.Revoked(r.visitor.ID):
		return unauthorized.wrap(errRevoked)
	case <-r.Context().Done():
		return nil // the client has gone, but the flow run continues
	}
	return reply(w, http.StatusAccepted, flowRunAccepted{l.place, in.ID, running})
}

// recorded returns the recorded state of the flow run, if it began with the same file and inputs.
func (d *flowDriving) recorded(ctx context.Context) (*flow.State, error) {
	all, err := d.file.Fill(d.in.Inputs)
	if err != nil {
		return nil, err
	}
	return (&flow.Driver{Log: d.runner.Log()}).Recorded(ctx, d.file, d.in.ID, all)
}

// hasBegun reports whether the start of the flow run is on record.
func (f *drivenFlow) hasBegun() bool {
	select {
	case <-f.begun:
		return true
	default:
		return false
	}
}

// load checks the body and loads the flow. It sets a missing id.
func (in *flowStartJSON) load(p *project.Project) (*flow.Flow, error) {
	file, err := loadFlow(p, in.Flow)
	if err != nil {
		return nil, err
	}
	if in.Digest != "" && in.Digest != file.Digest {
		return nil, inputDiffers.problem(otherFlowFile.With(in.Flow))
	}
	if in.ID == "" {
		in.ID = file.Name + "-" + uuid.NewString()
	}
	if err := flow.CheckID(in.ID); err != nil {
		return nil, badRequest.wrap(err)
	}
	if strings.HasPrefix(in.ID, event.SchedulePrefix) {
		return nil, badRequest.problem(scheduleRunID)
	}
	return file, checkFlowInputs(file, in.Inputs)
}

// fingerprint identifies the content of a start.
func (d *flowDriving) fingerprint() string {
	same := d.in
	same.place, same.Digest = place{}, d.file.Digest
	b, err := json.Marshal(same)
	if err != nil {
		panic(err) // plain fields can always be encoded
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// joinFlow returns the driven flow run with this id. If this server does not drive it, joinFlow begins to drive it.
func (s *Server) joinFlow(d *flowDriving) (*drivenFlow, error) {
	select {
	case <-s.stopping:
		return nil, stoppingNow.problem(nothingSent)
	default:
	}
	h := &s.flowRunsHere
	key := flowRunKey{d.l.place, d.in.ID}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.driven[key]; f != nil {
		if f.fingerprint != d.fingerprint() {
			return nil, problemOfFlow(flow.ErrOtherInputs, d.in.ID)
		}
		f.devices = append(f.devices, d.device)
		return f, nil
	}
	if len(h.driven) >= mostFlowRuns {
		return nil, tooMany.problem(manyFlowRuns.With(mostFlowRuns))
	}
	f := &drivenFlow{fingerprint: d.fingerprint(), devices: []string{d.device},
		begun: make(chan struct{}), over: make(chan struct{})}
	h.driven[key] = f
	delete(h.faults, key)
	s.turns.Go(func() {
		f.err = s.driveFlow(d, f)
		fault := f.err
		if !f.hasBegun() || errors.Is(fault, errStopped) {
			fault = nil
		}
		h.end(key, fault)
		close(f.over)
	})
	return f, nil
}

// driveFlow drives a flow run. It returns when the flow run has ended, when the server stops, or after an error.
func (s *Server) driveFlow(d *flowDriving, f *drivenFlow) error {
	_, wait := d.project.Answering(true, 0)
	turns := &flow.Turns{Project: d.project, Runner: d.runner, Choice: project.Choice{Provider: d.in.Provider},
		Permissions: d.mode, AnswerIn: wait, Sender: d.sender}
	driver := &flow.Driver{
		Log: d.runner.Log(), Questions: d.runner.Questions(), Locks: d.l.paths.Locks, By: d.sender, Stop: s.stopping,
		Permissions: d.in.Permissions,
		Most:        cap(s.slots), Stay: true,
		Show: func(*flow.State, *flow.StepState, int) { f.once.Do(func() { close(f.begun) }) },
		Answer: func(ctx context.Context, c flow.Call) (record.Result, error) {
			return s.answerStep(ctx, f, func() (record.Result, error) { return turns.Answer(ctx, c) })
		},
	}
	_, err := driver.Run(s.hard, d.file, d.in.ID, d.in.Inputs)
	return err
}

// isWanted reports whether one of the devices that sent the start is still paired.
func (s *Server) isWanted(f *drivenFlow) bool {
	s.flowRunsHere.mu.Lock()
	defer s.flowRunsHere.mu.Unlock()
	return slices.ContainsFunc(f.devices, func(id string) bool {
		_, ok := s.opt.Devices.Find(id)
		return ok
	})
}

// answerStep answers a step's input. It waits while the server runs its maximum number of turns. If all devices that
// sent the start were revoked, answerStep sends nothing.
func (s *Server) answerStep(
	ctx context.Context, f *drivenFlow, answer func() (record.Result, error),
) (record.Result, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.stopping:
		return record.Result{}, errStopped
	case <-ctx.Done():
		return record.Result{}, context.Cause(ctx)
	}
	if !s.isWanted(f) {
		return record.Result{}, unfit.problem(revokedFlow)
	}
	s.liveSessions.makeRoom(nil)
	return answer()
}
