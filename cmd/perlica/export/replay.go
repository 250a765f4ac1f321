package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider/replay"
)

// AddReplayFlags adds the flags for an export that 'perlica agent replay' reads.
func AddReplayFlags(cmd *cobra.Command, f *Flags) {
	fl := cmd.Flags()
	fl.StringVar(&f.replay, "replay", "",
		"write only the lines of the protocol to this `file`, for 'perlica agent replay'; - is standard output")
	fl.BoolVar(&f.redact, "redact", false, "with --replay: mask the secrets in the lines")
	for _, other := range []string{"output", "format"} {
		cmd.MarkFlagsMutuallyExclusive("replay", other)
	}
	cmd.MarkFlagsMutuallyExclusive("redact", "raw")
}

// writeReplay writes the lines of a session as a file of frames.
func writeReplay(ctx context.Context, a *frame.App, log *store.Reader, p *project.Project, f Flags) error {
	q, err := f.Query(ctx, log, time.Now())
	if err != nil {
		return err
	}
	frames := replay.FromLog(ctx, log, q.Session, q.Run)
	if !f.raw {
		redactor, err := redactorOf(a, p)
		if err != nil {
			return err
		}
		frames = withoutSecrets(frames, redactor.Payload, f.redact)
	}
	n := 0
	err = a.WriteTo(f.Out, func(w io.Writer) (err error) {
		n, err = replay.Write(w, frames)
		return err
	})
	if err != nil {
		return HintGone(err)
	}
	a.Note("wrote " + frame.Count(n, "line") + " of the protocol")
	return nil
}

// withoutSecrets masks possible secrets in the frames. If masks is false, it fails at a line with a possible secret.
func withoutSecrets(frames iter.Seq2[replay.Frame, error], mask func([]byte) []byte, masks bool) iter.Seq2[replay.Frame,
	error] {
	return func(yield func(replay.Frame, error) bool) {
		for f, err := range frames {
			if err == nil {
				masked := mask(f.Line)
				if !masks && string(masked) != string(f.Line) {
					err = frame.WithHint(fmt.Errorf("a secret seems to be in the line of event %d", f.Seq),
						"--redact masks what is found; --raw writes everything as it is")
				}
				f.Line = masked
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// HintGone adds a hint to the error of a line that the record no longer has.
func HintGone(err error) error {
	var gone *replay.GoneError
	if !errors.As(err, &gone) {
		return err
	}
	return frame.WithHint(err,
		"what was pruned is gone: choose a session or a run without it; what was masked is in an export with --raw, or in "+
			"'perlica session export --replay'")
}
