package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog"
)

func (a *app) logVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Recompute every hash of the log and say what holds",
		Long: `Recompute the log from its events: every payload's hash, every event's leaf, and the
root of the RFC 6962 Merkle tree over all of them; then compare with what is stored.
Without FILE it is the log of this context. Nothing is written.

It finds edits, deletions, insertions and reorderings by whoever did not recompute the
tree. Against somebody who did, compare the root with one that you kept elsewhere.

Exit codes: 0 the log is as it was written; 1 it is damaged, or cannot be read.`,
		Example: `  perlica log verify
  perlica log verify /backup/eventlog.db --json`,
		Args: between(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logVerify(cmd.Context(), args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// verified is what log verify found, as it prints it.
type verified struct {
	File     string       `json:"file"`
	OK       bool         `json:"ok"`
	Events   int64        `json:"events"`
	Root     string       `json:"root"` // base64
	FirstBad eventlog.Seq `json:"first_bad_seq,omitempty"`
	Damage   string       `json:"damage,omitempty"`
}

func (a *app) logVerify(ctx context.Context, args []string, asJSON bool) error {
	v, err := a.verifyLog(ctx, args)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(v)
	} else {
		err = a.write(func(w io.Writer) error { return v.write(w, a.styles(a.stdout)) })
	}
	if err == nil && !v.OK {
		err = &exitError{code: 1}
	}
	return err
}

// verifyLog opens and verifies the log. What is too damaged to be opened is damage, too.
func (a *app) verifyLog(ctx context.Context, args []string) (v verified, err error) {
	log, file, err := a.logToVerify(ctx, args)
	v.File = file
	if errors.Is(err, eventlog.ErrCorrupt) {
		v.Damage = err.Error()
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	rep, err := a.verifyWithProgress(ctx, log)
	if errors.Is(err, eventlog.ErrCorrupt) {
		v.Damage = err.Error()
		return v, nil
	}
	v.OK, v.Events, v.Root = rep.OK(), rep.Events, rep.Root.String()
	v.FirstBad, v.Damage = rep.FirstBad, rep.Damage
	return v, err
}

func (a *app) logToVerify(ctx context.Context, args []string) (*eventlog.Reader, string, error) {
	if len(args) > 0 {
		log, err := eventlog.OpenReader(ctx, args[0])
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no event log at %s", args[0])
		}
		return log, args[0], err
	}
	p, err := a.locateToRead()
	if err != nil {
		return nil, "", err
	}
	log, paths, err := a.reader(ctx, p)
	file := paths.EventLog
	if rel, rerr := filepath.Rel(p.dir, file); rerr == nil {
		file = rel
	}
	return log, file, err
}

// verifyWithProgress verifies and shows on a terminal how far it is.
func (a *app) verifyWithProgress(ctx context.Context, log *eventlog.Reader) (eventlog.Report, error) {
	size, _, err := log.Head(ctx)
	if err != nil {
		size = 0 // Verify says what is wrong
	}
	status := term.NewStatus(a.stderr, term.StatusWidth(a.stderr, a.getenv), a.styles(a.stderr), term.SystemClock())
	defer func() { _ = status.Close() }() // errors of the terminal are nobody's business
	return log.Verify(ctx, func(n int64) {
		status.Set(fmt.Sprintf("verifying: %d of %d events", n, size))
	})
}

func (v verified) write(w io.Writer, s term.Styles) error {
	if !v.OK {
		_, err := fmt.Fprintf(w, "%s %s\n", s.Red("DAMAGED"), term.Sanitize(v.File))
		if v.FirstBad > 0 && err == nil {
			_, err = fmt.Fprintf(w, "first bad event: seq %d\n", v.FirstBad)
		}
		if err == nil {
			_, err = fmt.Fprintf(w, "what is wrong:   %s\nbefore it:       %s in order\n", term.Sanitize(v.Damage), count(int(v.Events), "event"))
		}
		return err
	}
	_, err := fmt.Fprintf(w, `%s %s
events: %d
root:   %s
Every payload has its recorded hash, every event its leaf, no number is missing, and
the root follows from all of them. Keep the number and the root elsewhere to find out
later whether the log was rewritten since.
`, s.Green("OK"), term.Sanitize(v.File), v.Events, v.Root)
	return err
}
