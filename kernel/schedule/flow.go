package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/flow"
	"github.com/perlica/perlica/kernel/program"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
)

// flowCalls is the number of calls of one flow run at the same time.
const flowCalls = 16

// errUntrusted means that a file of a schedule's flow lies inside the project, and its bytes are not the trusted ones.
var errUntrusted = message.New("schedule.flow-untrusted",
	"the flow's file %s lies inside the project, and its bytes are not trusted; see %s")

// FlowFiles returns the files of the flows of a project's schedules. Their bytes must be trusted, because no person
// looks at a flow before a schedule runs it. It omits a flow that does not exist. The error names the flows that cannot
// be read. The list then has the files of the others.
func FlowFiles(p *project.Project) (list []program.File, err error) {
	for _, c := range p.Config.Schedules {
		if c.Flow == "" {
			continue
		}
		f, lerr := flow.Load(flowPath(p, c.Flow))
		if lerr != nil {
			if !errors.Is(lerr, fs.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("schedule %s: %w", c.ID, lerr))
			}
			continue
		}
		for _, file := range filesOf(p.Programs(), f) {
			if !slices.Contains(list, file) {
				list = append(list, file)
			}
		}
	}
	return list, err
}

// flowPath returns the path of a schedule's flow. A relative path begins at the folder of the project.
func flowPath(p *project.Project, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Workspace.Root, name)
}

// filesOf returns the files of a flow, in the order of their paths.
func filesOf(store *program.Store, f *flow.Flow) (list []program.File) {
	for path, digest := range f.Files {
		list = append(list, store.FileOf(path, digest))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}

// trustedFiles returns the store of the trusted contents of flow files. If an environment variable trusts the project,
// the present contents are trusted.
func trustedFiles(p *project.Project) *program.Store {
	store := p.Programs()
	if p.Config.Project.Once {
		files, _ := FlowFiles(p) // if a flow cannot be read, its flow run reports the error
		store.Pin(files)
	}
	return store
}

// loadFlow reads the flow of a schedule. The error says which file is not trusted.
func (w Work) loadFlow(p *project.Project, name string) (*flow.Flow, error) {
	f, err := flow.Load(flowPath(p, name))
	if err != nil {
		return nil, err
	}
	for _, file := range filesOf(w.trusted, f) {
		if !file.Trusted {
			return nil, errUntrusted.With(file.Path, "perlica config trust")
		}
	}
	return f, nil
}

// CheckFlow checks the file of a schedule's flow and the inputs for this flow. It returns nil if the schedule has no
// flow.
func CheckFlow(p *project.Project, s Schedule) error {
	if s.Flow == "" {
		return nil
	}
	f, err := flow.Load(flowPath(p, s.Flow))
	if err == nil {
		_, err = f.Fill(s.Inputs)
	}
	return err
}

// runFlow drives the flow run of a call. The id of the flow run is the id of the call's input. When soft ends, no
// further step begins, and the running calls may still take w.Grace. The next Keeper continues such a flow run. After
// an error no Keeper continues it, so runFlow closes its open questions unless another process drives it.
func (w Work) runFlow(hard, soft context.Context, c Call) error {
	s, err := w.driveFlow(hard, soft, c)
	switch {
	case err == nil:
	case soft.Err() != nil: // the Keeper ends, which is no refusal
		return nil
	default:
		if lock, lerr := filelock.Acquire(filelock.Run(w.locks, string(flow.RunID(string(c.Input))))); lerr == nil {
			r := w.Runner
			err = errors.Join(err, flow.CloseQuestions(context.WithoutCancel(hard), r.Log(), r.Questions(), string(c.Input)))
			lock.Release()
		}
		w.Answered(c, record.Result{}, err)
		return err
	}
	if s != nil {
		w.Driven(c, s)
	}
	return nil
}

// driveFlow returns nil as state if the flow run had begun before and nothing has changed.
func (w Work) driveFlow(hard, soft context.Context, c Call) (*flow.State, error) {
	p, err := w.Load()
	if err != nil {
		return nil, err
	}
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return nil, err
	}
	f, err := w.loadFlow(p, c.Flow)
	if err != nil {
		return nil, err
	}
	id := string(c.Input)
	before, err := w.newestOf(hard, id)
	if err != nil {
		return nil, err
	}
	turns := flow.Turns{Project: p, Runner: w.Runner, Choice: project.Choice{Provider: c.Provider},
		Permissions: policy.Mode(c.Permissions), AnswerIn: p.Config.AnswerTimeout, Sender: c.ID}
	driver := flow.Driver{Log: w.Runner.Log(), Questions: w.Runner.Questions(), Locks: paths.Locks, By: "schedule " + c.ID,
		// A flow run for a missed time delays the flow runs of other schedules, so it does not wait here for a
		// person.
		Stop: soft.Done(), Most: flowCalls, Stay: w.Stay && !c.MadeUp,
		Answer: func(ctx context.Context, call flow.Call) (record.Result, error) {
			stop, release := w.stopAfter(hard, soft)
			defer release()
			turns := turns
			turns.Stop = stop
			return turns.Answer(ctx, call)
		},
	}
	s, err := driver.Run(hard, f, id, c.Inputs)
	if err != nil {
		return nil, err
	}
	after, err := w.newestOf(hard, id)
	if err != nil || before != 0 && after == before {
		return nil, err
	}
	return s, nil
}

// newestOf returns the number of the newest event of a flow run.
func (w Work) newestOf(ctx context.Context, id string) (event.Seq, error) {
	e, _, err := w.Runner.Log().Last(ctx, event.Query{Run: flow.RunID(id)})
	return e.Seq, err
}
