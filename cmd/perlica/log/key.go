package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) logKeyCommand() *cobra.Command {
	return frame.Group("key", "Show or replace the key that signs checkpoints",
		`Perlica signs the checkpoints of all your logs with one Ed25519 key. The first run makes the
key in your own directories, where only you can read it. See docs/evidence.md.`,
		a.logKeyShowCommand(), a.logKeyRotateCommand())
}

// shownKeys are the keys as the command log key show prints them.
type shownKeys struct {
	File   string     `json:"file"`
	Origin string     `json:"origin,omitempty"`
	Keys   []shownKey `json:"keys"`
}

type shownKey struct {
	Key     string `json:"key"`
	Retired bool   `json:"retired"`
}

func (a *app) logKeyShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show", Annotations: frame.ReadOnly.Annotation(),
		Short: "Print the verifier keys of this context's log",
		Long: `Print the keys that verify the checkpoints of this context's log: the present key and the
keys that it replaced. These keys are public. Give them to everyone that checks your
checkpoints and proofs, in a way that nobody can tamper with. The output also names the file
with the private key: keep that file secret.

A verifier key consists of the log's name, the key's id and the public key, as in
https://c2sp.org/signed-note. The same key signs all your logs, each under its own name.`,
		Example: `  perlica log key show
  perlica log key show --json | jq -r '.keys[] | select(.retired | not).key'`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Reading(cmd.Context(), func(log *store.Reader, p *project.Project) error {
				k, err := evidence.ReadKeys(p.Dirs.KeyDir())
				if err != nil {
					return err
				}
				shown, err := keysOf(cmd.Context(), log, k, p)
				if err != nil {
					return err
				}
				return a.Show(asJSON, shown, shown.writeText)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// keysOf returns the verifier keys of a log.
func keysOf(ctx context.Context, log *store.Reader, k *evidence.Keys, p *project.Project) (s shownKeys, err error) {
	s.File = evidence.KeyPath(p.Dirs.KeyDir())
	if s.Origin, err = log.Origin(ctx); err != nil {
		return s, err
	}
	if s.Origin == "" {
		return s, frame.WithHint(errors.New("the log is empty: it has no name yet"), "the first 'perlica run' gives it one")
	}
	for i, key := range k.VerifierKeys(s.Origin) {
		s.Keys = append(s.Keys, shownKey{Key: key, Retired: i > 0})
	}
	if len(s.Keys) == 0 {
		return s, frame.WithHint(fmt.Errorf("there is no key yet: %s", s.File),
			"the next 'perlica run' makes it, or 'perlica log checkpoint'")
	}
	return s, nil
}

func (k shownKeys) writeText(w io.Writer, s screen.Styles) error {
	_, err := fmt.Fprintf(w, "%s %s\n%s %s\n", s.Dim("file   "), screen.Sanitize(k.File), s.Dim("log    "),
		screen.Sanitize(k.Origin))
	for _, key := range k.Keys {
		word := s.Green("in use ")
		if key.Retired {
			word = s.Dim("retired")
		}
		if err == nil {
			_, err = fmt.Fprintln(w, word, screen.Sanitize(key.Key))
		}
	}
	return err
}

func (a *app) logKeyRotateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Annotations: frame.PersonOnly.Annotation(),
		Short: "Replace the key by a new one",
		Long: `Make a new key for the checkpoints of all your logs. Perlica keeps the public half of the old
key, so the old signatures still count here. It deletes the private half, so nobody can sign
with the old key again.

Give the new verifier key to everyone that verifies your checkpoints elsewhere: 'perlica log
key show' prints it.`,
		Example: `  perlica log key rotate`,
		Args:    frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.LocateToRead()
			if err != nil {
				return err
			}
			k, err := evidence.RotateKeys(p.Dirs.KeyDir())
			if err != nil {
				return err
			}
			if err := a.Say("There is a new key in %s.", evidence.KeyPath(p.Dirs.KeyDir())); err != nil {
				return err
			}
			return a.sayVerifierKey(cmd.Context(), k)
		},
	}
}

// sayVerifierKey prints the verifier key of the context's log. It prints nothing if there is no log.
func (a *app) sayVerifierKey(ctx context.Context, k *evidence.Keys) error {
	err := a.Reading(ctx, func(log *store.Reader, _ *project.Project) error {
		name, err := log.Origin(ctx)
		if err != nil || name == "" {
			return err
		}
		return a.Say("By it %s is verified with\n  %s", name, k.VerifierKeys(name)[0])
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
