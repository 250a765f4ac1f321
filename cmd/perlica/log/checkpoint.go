package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/witness"
)

// witnessTimeout is the longest time for all requests to a witness.
const witnessTimeout = 30 * time.Second

func (a *app) logCheckpointCommand() *cobra.Command {
	var asJSON bool
	var urls, keys []string
	cmd := &cobra.Command{
		Use: "checkpoint", Annotations: frame.PersonOnly.Annotation(),
		Short: "Sign the log as it is now, and print the signed note",
		Long: `Sign the present state of the log with your key, and print the signed note. Perlica also
stores the note in the log, and in the anchor: a small file next to the log. The end of every
run does the same without printing.

The note is a https://c2sp.org/tlog-checkpoint: the log's name, the number of its events, the
root of the hash tree over all events, and the signature. Keep a copy where the log's owner
cannot change it, such as a ticket, a chat or a git tag. The copy later proves that no event
was changed or cut off: see docs/evidence.md.

--witness sends the note to a https://c2sp.org/tlog-witness, a server of another operator. The
witness signs only if this checkpoint contains everything that it saw of this log before. Perlica
stores and prints the witness's signature. The witness gets hashes, and no events.

Exit codes: 0 you and every witness signed; 1 a signature is missing.`,
		Example: `  perlica log checkpoint
  perlica log checkpoint > checkpoint.txt
  perlica log checkpoint --witness https://witness.example/w1 --witness-key 'witness.example+…'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := witnesses(urls, keys)
			if err != nil {
				return err
			}
			return a.logCheckpoint(cmd.Context(), list, asJSON)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	fl.StringArrayVar(&urls, "witness", nil,
		"let the witness at this `URL` (its submission prefix) sign, too; may be repeated")
	fl.StringArrayVar(&keys, "witness-key", nil,
		"the verifier `KEY` of a witness: then only signatures of the given keys count; may be repeated")
	frame.CompleteFlag(cmd, "witness", frame.NoFiles)
	frame.CompleteFlag(cmd, "witness-key", frame.NoFiles)
	return cmd
}

func witnesses(urls, keys []string) (list []*witness.Witness, err error) {
	known, err := verifiers(keys, "--witness-key")
	if err != nil {
		return nil, err
	}
	if len(urls) == 0 && len(keys) > 0 {
		return nil, frame.UsageErrorf("--witness-key needs --witness")
	}
	for _, u := range urls {
		if err := witness.CheckURL(u); err != nil {
			return nil, frame.UsageErrorf("--witness: %w", err)
		}
		list = append(list, &witness.Witness{URL: u, Keys: known})
	}
	return list, nil
}

// checkpointJSON is a checkpoint as the command log checkpoint prints it with --json.
type checkpointJSON struct {
	Origin    string      `json:"origin"`
	Size      int64       `json:"size"`
	Root      string      `json:"root"` // base64
	Note      string      `json:"note"`
	Witnesses []witnessed `json:"witnesses,omitempty"`
}

type witnessed struct {
	URL   string `json:"url"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func (a *app) logCheckpoint(ctx context.Context, list []*witness.Witness, asJSON bool) (err error) {
	p, err := a.LocateToRead()
	if err != nil {
		return err
	}
	there, _, err := a.Reader(ctx, p) // Opening the log for writing would create a missing log.
	if err != nil {
		return err
	}
	if err := there.Close(); err != nil {
		return err
	}
	r, done, err := a.Open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	c, err := r.Log().Checkpoint(ctx)
	switch {
	case c.Size == 0 && err == nil:
		return frame.WithHint(errors.New("the log is empty: there is nothing to sign"), "the first 'perlica run' fills it")
	case err != nil && c.Note == "":
		return err
	case err != nil: // Without an error, the checkpoint is signed and stored.
		a.Note("warning: the checkpoint is not in the anchor next to the log: " + err.Error())
	}
	out := checkpointJSON{Origin: c.Origin, Size: c.Size, Root: c.Root.String()}
	var failed error
	for _, w := range list {
		cosigned, werr := a.requestCosignature(ctx, w, r.Log(), c)
		entry := witnessed{URL: w.URL, OK: werr == nil}
		if werr == nil {
			c = cosigned
		} else {
			entry.Error = werr.Error()
			failed = errors.Join(failed, werr)
		}
		out.Witnesses = append(out.Witnesses, entry)
	}
	out.Note = c.Note
	err = a.Show(asJSON, out, func(w io.Writer, _ screen.Styles) error {
		_, err := io.WriteString(w, c.Note)
		return err
	})
	if err == nil && failed != nil {
		err = frame.WithHint(failed, "%s", witnessHint(failed))
	}
	return err
}

// requestCosignature asks a witness to cosign a checkpoint and stores the cosignature.
func (a *app) requestCosignature(ctx context.Context, w *witness.Witness, log *eventlog.Log,
	c evidence.Checkpoint) (evidence.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	cosigned, err := w.Cosign(ctx, &log.Reader, c)
	if err != nil {
		return c, err
	}
	if len(w.Keys) == 0 {
		a.Note(fmt.Sprintf("what %s signed was not checked: --witness-key does that", w.URL))
	}
	return cosigned, log.StoreCheckpoint(ctx, cosigned.Note)
}

// witnessHint returns a hint for the error of a witness that did not cosign.
func witnessHint(err error) string {
	switch {
	case errors.Is(err, witness.ErrUnknownLog), errors.Is(err, witness.ErrUnknownKey):
		return "a witness signs for logs it was told of: give its operator what 'perlica log key show' prints, also after " +
			"'perlica log key rotate'"
	case errors.Is(err, witness.ErrInconsistent), errors.Is(err, witness.ErrLarger):
		return "the witness saw another log of this name: was the file put back from a copy, or changed? 'perlica log " +
			"verify' says more"
	case errors.Is(err, witness.ErrCosignature):
		return "compare the key with the one that the witness's operator publishes"
	case errors.Is(err, witness.ErrUnreachable):
		return "the checkpoint itself is made; try again later"
	}
	return "is it the submission prefix of a https://c2sp.org/tlog-witness?"
}
