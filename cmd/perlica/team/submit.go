package team

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
)

// inputLine is an input as one line of NDJSON.
type inputLine struct {
	ID          string    `json:"id"`
	Text        string    `json:"text"`
	Files       []string  `json:"files"`
	Project     string    `json:"project"`
	Provider    string    `json:"provider"`
	Labels      []string  `json:"labels"`
	Permissions string    `json:"permissions"`
	Priority    int       `json:"priority"`
	NotBefore   time.Time `json:"not_before"`
	Replaces    string    `json:"replaces"`
}

// maxLine is the largest length of a line in bytes.
const maxLine = team.MaxInput * 2

func (a *app) submitCommand() *cobra.Command {
	var file, name string
	cmd := &cobra.Command{
		Use: "submit -f FILE", Annotations: frame.PersonOnly.Annotation(),
		Short: "Submit many inputs to the team",
		Long: `Submit many inputs to the team. FILE has one JSON object per line. Its member text is
required. Optional members are id, files, project, provider, labels, permissions, priority
(a higher number comes first), not_before (RFC 3339) and replaces (the id of an earlier input
that this one replaces).

An id that the hub knows already is not submitted again; with another text it is an error.
With --json the command prints each id with its result: new, there (already submitted) or
differs.`,
		Example: `  perlica team submit -f inputs.ndjson
  jq -c '{id: .number|tostring, text: .title}' issues.json | perlica team submit -f -`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
	}
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object per line")
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the inputs from this `file`; - is standard input")
	cmd.Flags().StringVar(&name, "project", "",
		"the `name` of the project for lines without one (default: this folder's project)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return frame.WithHint(frame.UsageErrorf("'perlica team submit' needs a file"),
				"perlica team submit -f inputs.ndjson; one input: perlica run --team")
		}
		return a.withTeam(cmd.Context(), func(t *team.Team, p *project.Project) error {
			in, err := a.openInputs(file, cmp.Or(name, p.Name()))
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			defer in.closeFile()
			return a.submitInputs(cmd.Context(), t, in, *asJSON)
		})
	}
	return cmd
}

// inputs are the lines of a file. The file is read twice. The first pass checks all lines, and the second pass
// submits them in batches. Only one batch is in memory.
type inputs struct {
	f       *os.File
	dir     string // folder of the files that the lines name
	project string // project of a line that names no project
	spooled bool   // true if f is a temporary copy
}

// openInputs opens a file with inputs. If the file can be read only once, it makes a temporary copy.
func (a *app) openInputs(file, name string) (_ *inputs, err error) {
	in := &inputs{project: name}
	from := a.Stdin
	if file != "-" {
		if in.f, err = os.Open(file); err != nil {
			return nil, err
		}
		info, err := in.f.Stat()
		if in.dir = filepath.Dir(file); err == nil && info.Mode().IsRegular() {
			return in, nil
		}
		defer func(f *os.File) { _ = f.Close() }(in.f) // The file was only read, so a failed close loses no data.
		from = in.f
	}
	if in.f, err = os.CreateTemp("", "perlica-inputs-*"); err != nil {
		return nil, err
	}
	in.spooled = true
	// The copy is removed at once, so that it does not remain when the process is killed. On systems that cannot
	// remove an open file, closeFile removes it.
	_ = os.Remove(in.f.Name())
	if _, err := io.Copy(in.f, from); err != nil {
		in.closeFile()
		return nil, fmt.Errorf("a copy of the inputs, which are read twice: %w", err)
	}
	return in, nil
}

func (in *inputs) closeFile() {
	_ = in.f.Close() // The file was only read, or it is removed below.
	if in.spooled {
		_ = os.Remove(in.f.Name()) // The file may have been removed already.
	}
}

// readDrafts yields the inputs of the file. After an error it yields nothing more. The error names the line.
func (in *inputs) readDrafts() iter.Seq2[team.Draft, error] {
	return func(yield func(team.Draft, error) bool) {
		if _, err := in.f.Seek(0, io.SeekStart); err != nil {
			yield(team.Draft{}, err)
			return
		}
		scan := bufio.NewScanner(in.f)
		scan.Buffer(nil, maxLine)
		lines := map[string]int{} // number of the line, by the id of its input
		for n := 1; scan.Scan(); n++ {
			if len(bytes.TrimSpace(scan.Bytes())) == 0 {
				continue
			}
			d, err := draft(scan.Bytes(), in.dir, in.project)
			if before := lines[d.ID]; err == nil && before > 0 && d.ID != "" {
				err = fmt.Errorf("the id %s stands in line %d, too", d.ID, before)
			}
			if err != nil {
				yield(d, fmt.Errorf("line %d: %w", n, err))
				return
			}
			lines[d.ID] = n
			if !yield(d, nil) {
				return
			}
		}
		if err := scan.Err(); err != nil {
			yield(team.Draft{}, err)
		}
	}
}

func draft(b []byte, dir, name string) (d team.Draft, err error) {
	var l inputLine
	if err := strict.UnmarshalObject(b, &l); err != nil {
		return d, err
	}
	d = team.Draft{
		ID: l.ID, Text: l.Text, Project: l.Project, Provider: l.Provider, Labels: l.Labels, Permissions: l.Permissions,
		Priority:  l.Priority,
		NotBefore: l.NotBefore, Replaces: l.Replaces,
	}
	if err := (kernel.Input{ID: event.InputID(d.ID)}).CheckID(); err != nil {
		return d, err
	}
	if d.Project == "" {
		d.Project = name
	}
	for _, f := range l.Files {
		if !filepath.IsAbs(f) {
			f = filepath.Join(dir, f)
		}
		file, err := team.ReadFile(f)
		if err != nil {
			return d, err
		}
		d.Attachments = append(d.Attachments, file)
	}
	return d, d.Check()
}

// These are the largest numbers of inputs and of bytes in one batch.
const (
	batchInputs = 1000
	batchBytes  = 8 << 20
)

// readBatches yields the inputs of the file in batches. After an error it yields nothing more, and an error comes
// without inputs.
func (in *inputs) readBatches() iter.Seq2[[]team.Draft, error] {
	return func(yield func([]team.Draft, error) bool) {
		var batch []team.Draft
		size := 0
		for d, err := range in.readDrafts() {
			if err != nil {
				yield(nil, err)
				return
			}
			batch = append(batch, d)
			if size += d.Size(); len(batch) < batchInputs && size < batchBytes {
				continue
			}
			if !yield(batch, nil) {
				return
			}
			batch, size = nil, 0
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// progressBar returns a bar that shows which part of the whole is done.
func progressBar(done, whole int) string {
	const width = 20
	full := width * done / whole
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// submitInputs checks all inputs, submits them and prints the result of each.
func (a *app) submitInputs(ctx context.Context, t *team.Team, in *inputs, asJSON bool) error {
	status := screen.NewStatusLine(a.Stderr, screen.StatusWidth(a.Stderr, a.Getenv), a.Styles(a.Stderr),
		screen.SystemClock())
	defer func() { _ = status.Close() }() // If the terminal is closed, there is no line to remove.
	total := 0
	for _, err := range in.readDrafts() {
		if err != nil {
			return frame.ExitUsage.With(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		total++
		status.Set(fmt.Sprintf("checked %d", total))
	}
	if total == 0 {
		return frame.ExitUsage.With(errors.New("there is no input"))
	}
	handed := 0
	ctx, stop := frame.CatchSignals(ctx, 0)
	defer stop.Release()
	counts, unsure, err := a.handOver(ctx, stop.First, t, in, func(came []submitted, n int) error {
		handed = n
		status.Set(fmt.Sprintf("submitted %s %d of %d", progressBar(n, total), n, total))
		if !asJSON {
			return nil
		}
		return a.Write(func(w io.Writer) error {
			enc := json.NewEncoder(status.Through(w))
			for _, c := range came {
				if err := enc.Encode(c); err != nil {
					return err
				}
			}
			return nil
		})
	})
	_ = status.Close() // If the terminal is closed, there is no line to remove.
	if len(counts) > 0 && !asJSON {
		err = errors.Join(err, a.Say("%d new, %d there before, %d under the id of another input", counts[hub.New],
			counts[hub.There], counts[hub.Differs]))
	}
	if unsure {
		a.Note("warning: the standby has not confirmed them: if the server fails now they may be lost")
	}
	var fate *team.FateError
	var stopped *kernel.StoppedError
	switch {
	case errors.As(err, &fate):
		return frame.WithHint(frame.ExitUnknown.With(err),
			"Perlica sends nothing to another generation; 'perlica team inputs' lists its inputs")
	case errors.As(err, &stopped):
		return frame.WithHint(frame.StopExitCode(stopped.Stop).With(fmt.Errorf("%s: %d of %d inputs were handed over",
			stopped.Stop.Why, handed, total)),
			"the same file can be submitted again if its lines have ids; a line without one is a new input each time")
	case err != nil:
		return err
	case counts[hub.Differs] > 0:
		return frame.WithHint(errors.New("some ids are those of other inputs"),
			"another input takes another id; --json says which")
	}
	return nil
}

// submitted is an input that was submitted, and the result.
type submitted struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// handOver submits the inputs until all are submitted or a stop comes. After a stop the error is a
// *kernel.StoppedError. After each batch it calls the function "tell" with the results of the batch and the number of
// inputs submitted so far. The result "counts" has the number of inputs by result. The result "unsure" reports whether
// a standby has not confirmed some of them.
func (a *app) handOver(ctx context.Context, stop <-chan fact.Stop, t *team.Team, in *inputs,
	tell func([]submitted, int) error) (counts map[string]int, unsure bool, err error) {
	counts = map[string]int{}
	n := 0
	for batch, err := range in.readBatches() {
		if err != nil {
			return counts, unsure, fmt.Errorf("the inputs changed after they were checked: %w", err)
		}
		select {
		case s := <-stop:
			return counts, unsure, &kernel.StoppedError{Stop: s}
		default:
		}
		states, err := t.Submit(ctx, batch)
		if errors.Is(err, hub.ErrUnsure) {
			unsure, err = true, nil
		}
		var came []submitted
		for _, d := range batch {
			if state := states[d.ID]; state != "" {
				counts[state]++
				came = append(came, submitted{d.ID, state})
			}
		}
		n += len(batch)
		if err = errors.Join(err, tell(came, n)); err != nil {
			return counts, unsure, err
		}
	}
	return counts, unsure, nil
}
