package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/provider/replay"
)

func replayCommand(a *frame.App) *cobra.Command {
	var opt replay.Options
	var f frame.EventFilter
	var check bool
	cmd := &cobra.Command{
		Use: "replay FILE", Annotations: frame.ReadOnly.Annotation(),
		Short: "Replay a recorded session of an agent",
		Long: `An ACP agent that repeats a recorded session. It tests a client with a real session, and
needs neither a key nor a network. FILE comes from 'perlica session export --replay' or
'perlica log export', or is a log (eventlog.db); a log also needs --run or --session.

The text of a prompt selects the recorded turn. Every other request gets the next recorded
answer to its method. The agent asks its questions again. If an answer differs from the
record, the turn ends with an error. A request without a recorded answer gets an error that
names the expected request. See docs/replay.md.

Exit codes: 0 the client has disconnected; 1 the record cannot be read, or it lacks a line;
2 the command line is wrong.`,
		Example: `  perlica session export my-session --replay yesterday.frames --redact
  perlica agent replay --check yesterday.frames
  perlica run --agent 'perlica agent replay yesterday.frames' 'the same prompt'`,
		Args: frame.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("speed") && !(opt.Speed > 0 && opt.Speed < math.Inf(1)) {
				return frame.WithHint(frame.UsageErrorf("--speed must be more than 0"),
					"without --speed nothing waits; 1 is the pace of the record, 2 twice as fast")
			}
			r, err := readRecord(cmd.Context(), args[0], f)
			if err = export.HintGone(err); err != nil && !check {
				// The error takes one line, because a client shows only the last line of an ended agent's output.
				err = frame.OneLineError(err)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if check {
				return a.Write(func(w io.Writer) error {
					return writeRecord(w, r, a.Styles(a.Stdout), screen.TerminalWidth(a.Stdout))
				})
			}
			return frame.IgnoreClosedPipe(replay.Serve(cmd.Context(), a.Stdin, a.Stdout, r, opt))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "print a description of the record, and do not start the agent")
	fl.BoolVar(&opt.InOrder, "in-order", false, "answer a prompt that is not in the record with the record's next turn")
	fl.BoolVar(&opt.AnyAnswer, "any-answer", false,
		"accept any answer to a question, and do not wait for a recorded cancel")
	fl.Float64Var(&opt.Speed, "speed", 0,
		"the pace as a `number`: 1 as recorded, 2 twice as fast; without this flag there are no pauses")
	fl.StringVar(&f.Run, "run", "",
		"replay this `run` of a log: its id, the beginning or end of its id, or its input's id")
	fl.StringVarP(&f.Session, "session", "s", "",
		"replay this `session` of a log: its name, its id, or the beginning or end of its id")
	cmd.MarkFlagsMutuallyExclusive("run", "session")
	return cmd
}

// readRecord reads the record in a file.
func readRecord(ctx context.Context, path string, f frame.EventFilter) (r *replay.Record, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, frame.WithHint(errors.Unwrap(err), "'perlica session export --replay FILE' writes a record")
	}
	defer func() { _ = file.Close() }() // The file was only read, so a failed close loses no data.
	const magic = "SQLite format 3\x00"
	head := make([]byte, len(magic))
	n, err := io.ReadFull(file, head)
	chosen := f.Run != "" || f.Session != ""
	switch {
	case err != nil && n == 0 && !errors.Is(err, io.EOF):
		return nil, errors.Unwrap(err)
	case string(head) == magic && !chosen:
		return nil, frame.WithHint(frame.UsageErrorf("this is a whole log"),
			"choose a session with --session or a run with --run")
	case string(head) == magic:
		r, err = recordOfLog(ctx, path, f)
	case chosen:
		return nil, frame.WithHint(frame.UsageErrorf("--run and --session need a log, and this file is not a log"),
			"of an export or a file of frames everything is replayed")
	default:
		r, err = replay.New(replay.Read(io.MultiReader(bytes.NewReader(head[:n]), file)))
	}
	switch {
	case errors.Is(err, replay.ErrNoRecord):
		err = frame.WithHint(err, "'perlica session export --replay FILE' writes one")
	case err == nil && len(r.Exchanges) == 0:
		err = frame.WithHint(errors.New("no line of the protocol is in it"),
			"nothing was said; choose another run or session")
	}
	return r, err
}

// recordOfLog reads a run or a session from a log.
func recordOfLog(ctx context.Context, path string, f frame.EventFilter) (r *replay.Record, err error) {
	log, err := store.OpenReader(ctx, path)
	if err != nil {
		return nil, frame.ExplainUnreadable(err, path)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := verify.Headers(ctx, log, 0); err != nil {
		return nil, err
	}
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return nil, err
	}
	return replay.New(replay.FromLog(ctx, log, q.Session, q.Run))
}

// writeRecord describes a record.
func writeRecord(w io.Writer, r *replay.Record, s screen.Styles, width int) error {
	var order []string
	times := map[string]int{}
	for _, x := range r.Exchanges {
		if times[x.Method]++; times[x.Method] == 1 {
			order = append(order, x.Method)
		}
	}
	for i, method := range order {
		order[i] = fmt.Sprintf("%s %d", method, times[method])
	}
	_, err := fmt.Fprintf(w, "%s in %s: %s\n", frame.Count(r.Lines, "line"), took(r.Millis),
		screen.Sanitize(strings.Join(order, ", ")))
	if err != nil {
		return err
	}
	g := frame.Grid{Head: []string{"TURN", "LINES", "QUESTIONS", "TIME", "END", "PROMPT"}}
	for i, x := range r.Turns() {
		end := x.End()
		if x.Cancelled {
			end += ", by the client"
		}
		g.Add(strconv.Itoa(i+1), strconv.Itoa(x.Lines), strconv.Itoa(x.Questions), took(x.Millis), end, x.Text)
	}
	return g.Write(w, s, width)
}

func took(millis int64) string { return frame.FormatDuration(time.Duration(millis) * time.Millisecond) }
