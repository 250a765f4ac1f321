package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/language"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/streamjson"
)

// flowShown is a flow that can be started.
type flowShown struct {
	Flow        string           `json:"flow"` // the name of the file without ".toml"
	Name        string           `json:"name,omitempty"`
	Description string           `json:"description,omitempty"`
	Digest      string           `json:"digest,omitempty"`
	Steps       int              `json:"steps"`
	Inputs      []flowInputShown `json:"inputs"`
	Error       string           `json:"error,omitempty"`
}

// flowInputShown is an input of a flow. An input without a default must be given.
type flowInputShown struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Default     *string `json:"default,omitempty"`
}

// mostFlowFiles limits the number of listed flows.
const mostFlowFiles = 200

// flowFileEnd ends the name of a flow's file.
const flowFileEnd = ".toml"

func (s *Server) flows(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	l, err := s.named(r)
	if err != nil {
		return err
	}
	p, err := l.findProject()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(p.Workspace.Root, "flows"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := []flowShown{}
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), flowFileEnd)
		if !ok || len(list) == mostFlowFiles {
			continue
		}
		list = append(list, showFlow(r.Context(), p, name))
	}
	return reply(w, http.StatusOK, map[string]any{"flows": list})
}

func showFlow(ctx context.Context, p *project.Project, name string) flowShown {
	shown := flowShown{Flow: name, Inputs: []flowInputShown{}}
	f, err := loadFlow(p, name)
	if err != nil {
		shown.Error = say(ctx).Error(err)
		return shown
	}
	shown.Name, shown.Description, shown.Digest, shown.Steps = f.Name, f.Description, f.Digest, len(f.Steps)
	for name, in := range f.Inputs {
		shown.Inputs = append(shown.Inputs, flowInputShown{name, in.Description, in.Default})
	}
	sort.Slice(shown.Inputs, func(i, j int) bool {
		a, b := &shown.Inputs[i], &shown.Inputs[j]
		if (a.Default == nil) != (b.Default == nil) {
			return a.Default == nil
		}
		return a.Name < b.Name
	})
	return shown
}

// loadFlow loads flows/NAME.toml of the project. The name is one part of a path. The file and all files that it names
// lie in the project after all links are resolved.
func loadFlow(p *project.Project, name string) (*flow.Flow, error) {
	if name == "" || len(name) > maxID || strings.ContainsAny(name, `/\`+"\x00") || !filepath.IsLocal(name+flowFileEnd) {
		return nil, notFound.problem(noFlowFile.With(name))
	}
	root, err := filepath.EvalSymlinks(p.Workspace.Root)
	if err != nil {
		return nil, err
	}
	inside := func(path string) bool {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	}
	path := filepath.Join(root, "flows", name+flowFileEnd)
	if _, err := os.Stat(path); err != nil {
		return nil, notFound.problem(noFlowFile.With(name))
	}
	if !inside(path) {
		return nil, forbidden.problem(outerFlow.With(name))
	}
	f, err := flow.Load(path)
	if err != nil {
		return nil, unfit.wrap(err)
	}
	for path := range f.Files {
		if !inside(path) {
			return nil, forbidden.problem(outerFlow.With(name))
		}
	}
	return f, nil
}

// flowRunShown is a flow run in a list.
type flowRunShown struct {
	place
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	State   string     `json:"state"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	By      string     `json:"by"`
}

// flowRunsPage says where a page of flow runs starts: after the flow run with this start and this id.
type flowRunsPage struct {
	Started int64
	ID      string
}

func (s *Server) flowRuns(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "limit", "page"); err != nil {
		return err
	}
	var from flowRunsPage
	n, err := r.limit(50)
	if err := cmp.Or(err, r.page(&from)); err != nil {
		return err
	}
	list, err := s.logs.list(r.Context(), r.where())
	if err != nil {
		return err
	}
	of, bad := together(r.Context(), list, func(ctx context.Context, l *eventLog, log logReader) ([]flowRunShown, error) {
		return l.flowRuns(ctx, log, from, n+1)
	})
	answer := struct {
		Runs       []flowRunShown `json:"flow_runs"`
		Unreadable []unreadable   `json:"unreadable"`
		Next       string         `json:"next,omitempty"`
	}{[]flowRunShown{}, bad, ""}
	for _, found := range of {
		answer.Runs = append(answer.Runs, found...)
	}
	sort.Slice(answer.Runs, func(i, j int) bool {
		a, b := &answer.Runs[i], &answer.Runs[j]
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID)) < 0
	})
	if len(answer.Runs) > n {
		answer.Runs = answer.Runs[:n]
		last := answer.Runs[n-1]
		answer.Next = nextPage(flowRunsPage{last.Started.UnixNano(), last.ID})
	}
	return reply(w, http.StatusOK, answer)
}

// flowRuns returns at most n flow runs of a log, the newest first, beginning at the page. The copy of a worker's log
// shows no flow runs, because their locks are on the worker's machine.
func (l *eventLog) flowRuns(ctx context.Context, log logReader, from flowRunsPage, n int) ([]flowRunShown, error) {
	file, ok := log.(*store.Reader)
	if !ok {
		return nil, nil
	}
	all, err := flow.List(ctx, file)
	if err != nil {
		return nil, err
	}
	sort.Slice(all, func(i, j int) bool { // the clock may have jumped, so the order of the log can differ
		return cmp.Or(all[j].Started.Compare(all[i].Started), strings.Compare(all[j].ID, all[i].ID)) < 0
	})
	var list []flowRunShown
	for _, f := range all {
		at := cmp.Or(cmp.Compare(f.Started.UnixNano(), from.Started), strings.Compare(f.ID, from.ID))
		if len(list) == n {
			break
		}
		if from != (flowRunsPage{}) && at >= 0 {
			continue
		}
		one := flowRunShown{l.place, f.ID, f.Name, f.Outcome, f.Started, nil, f.By}
		if f.Outcome != "" {
			one.Ended = &f.Ended
		} else {
			state, err := flow.Look(ctx, file, l.paths.Locks, f.ID)
			if err != nil {
				return nil, err
			}
			one.State = state.Outcome()
		}
		list = append(list, one)
	}
	return list, nil
}

func (s *Server) flowRun(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context"); err != nil {
		return err
	}
	l, state, err := s.findFlowRun(r)
	if err != nil {
		return err
	}
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	shown := map[string]any{}
	run := members{}
	if err := json.Unmarshal(b, &run); err != nil {
		return err
	}
	if sentences := say(r.Context()); sentences.Messages != nil {
		put(run, "steps", func(steps []members) []members { return localizedSteps(sentences, steps) })
	}
	for name, value := range run {
		shown[name] = value
	}
	shown["project"], shown["context"] = l.Project, l.Context
	fault := s.flowRunsHere.fault(flowRunKey{l.place, state.ID})
	if fault != nil && state.Finished == nil && !state.Alive {
		shown["fault"] = say(r.Context()).Error(fault)
	}
	return reply(w, http.StatusOK, shown)
}

// localizedSteps returns the steps of a flow run, or the items of a step, with their errors in a language.
func localizedSteps(say *language.Sentences, steps []members) []members {
	for _, step := range steps {
		step.say(say, "error")
		put(step, "items", func(items []members) []members { return localizedSteps(say, items) })
	}
	return steps
}

// findFlowRun finds the flow run that the path names.
func (s *Server) findFlowRun(r *request) (*eventLog, *flow.State, error) {
	id := r.PathValue("id")
	started := event.Query{Run: flow.RunID(id), Types: []event.Type{event.FlowStarted}}
	l, log, err := s.holding(r.Context(), r.where(), started)
	if err != nil {
		return nil, nil, err
	}
	file, ok := log.(*store.Reader)
	if !ok {
		return nil, nil, notFound.problem(noLogHasIt)
	}
	state, err := flow.Look(r.Context(), file, l.paths.Locks, id)
	return l, state, err
}

func (s *Server) cancelFlowRun(w http.ResponseWriter, r *request) error {
	if err := cmp.Or(r.checkParameters("project", "context"), r.decode(&struct{}{})); err != nil {
		return err
	}
	l, state, err := s.findFlowRun(r)
	if err != nil {
		return err
	}
	runner, _, err := l.openRunner(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	stop := fact.NewStop(streamjson.ByUser, stoppedBy.With(r.visitor.Label()))
	stop.Person = r.visitor.Label()
	err = flow.End(context.WithoutCancel(r.Context()), runner, l.paths.Locks, state, stop)
	over := errors.Is(err, flow.ErrFinished)
	if err != nil && !over && !errors.Is(err, flow.ErrGoesOn) { // after ErrGoesOn the view shows the running calls
		return err
	}
	if state.Started.Team != "" && (state.Finished == nil || state.Outcome() == fact.FlowCancelled) {
		// The process that handed the inputs over may be gone.
		if err := s.stopTeamFlow(r, runner.Log(), state.ID); err != nil {
			return err
		}
	}
	if over {
		return runOver.problem(flowRunOver.With(state.ID))
	}
	return reply(w, http.StatusOK, flowRunAccepted{l.place, state.ID, fact.FlowCancelled})
}

// stopTeamFlow stops the inputs that a cancelled flow run has handed over to a team.
func (s *Server) stopTeamFlow(r *request, log *eventlog.Log, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	t, err := s.logs.hub.Get(ctx)
	if err == nil {
		err = t.StopFlow(ctx, log, id, r.visitor.Label())
	}
	if err != nil {
		return logFailed.problem(flowInputsLeft.With(id, err))
	}
	return nil
}

func (s *Server) retryFlowStep(w http.ResponseWriter, r *request) error {
	var body struct {
		Step string `json:"step"`
		Item int    `json:"item"`
	}
	if err := cmp.Or(r.checkParameters("project", "context"), r.decode(&body)); err != nil {
		return err
	}
	l, state, err := s.findFlowRun(r)
	if err != nil {
		return err
	}
	runner, _, err := l.openRunner(context.WithoutCancel(r.Context()))
	if err != nil {
		return err
	}
	input, err := flow.Retry(context.WithoutCancel(r.Context()), runner.Log(), state, body.Step, body.Item,
		r.visitor.Label())
	if err != nil {
		return unfit.wrap(err)
	}
	return reply(w, http.StatusOK, struct {
		place
		ID    string        `json:"id"`
		Input event.InputID `json:"input_id"`
	}{l.place, state.ID, input})
}

// flowRunAccepted is a flow run with its state.
type flowRunAccepted struct {
	place
	ID    string `json:"id"`
	State string `json:"state"`
}

// problemOfFlow returns the problem for an error of a driver, in terms of the request.
func problemOfFlow(err error, id string) error {
	if errors.Is(err, flow.ErrOtherFile) || errors.Is(err, flow.ErrOtherInputs) {
		p := inputDiffers.problem(otherFlowRun.With(id))
		p.Input = id
		return p
	}
	if errors.Is(err, flow.ErrNeedsTeam) {
		return unfit.wrap(err)
	}
	return err
}

// checkFlowInputs checks the inputs for a flow. The problem of a wrong input names the input.
func checkFlowInputs(f *flow.Flow, given map[string]string) error {
	_, err := f.Fill(given)
	if err == nil {
		return nil
	}
	p := unfit.wrap(err)
	var wrong *flow.InputError
	if errors.As(err, &wrong) {
		p.Field = wrong.Name
	}
	return p
}
