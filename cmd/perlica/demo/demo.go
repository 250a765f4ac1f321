// Package demo is the command that plays a demonstration for a newcomer.
//
// The demonstration runs the real commands as child processes, with the built-in agent, in a new folder. The
// children have no other Perlica home than this folder. At a terminal the person answers the question. Without a
// terminal nobody answers the question, and Perlica says no, as in any other run.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/dialog"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/provider/descent"
)

// Command returns the command demo.
func Command(a *frame.App) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Annotations: frame.PersonOnly.Annotation(),
		Short: "Play a demonstration of three minutes, without an account",
		Long: `Play a demonstration with the built-in agent: one call, a question with its diff, a kill in
the middle of an answer, a forged event, and the proof of a decision. Each step prints its
commands and runs them in a new folder. Nothing outside of this folder changes. No model is
called.

At a terminal you answer the question, and Enter begins the next step. Without a terminal
nobody answers the question, so the answer is no.`,
		Example: `  perlica demo
  perlica demo --keep`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the folder at the end")
	return cmd
}

// run plays the demonstration in a new folder.
func run(ctx context.Context, a *frame.App, keep bool) (err error) {
	s := &stage{App: a, styles: a.Styles(a.Stdout), attended: screen.IsTerminal(a.Stdout) && dialog.CanAsk(a)}
	if s.program, err = os.Executable(); err != nil {
		return err
	}
	left := "the folder of the demonstration was removed"
	if keep {
		left = "the folder of the demonstration stays"
	}
	frame.SurviveBrokenPipes() // Otherwise a closed pipe would end this process, and the folder would stay.
	err = frame.Interruptible(ctx, left, func(ctx context.Context) error { return playInside(ctx, s, keep) })
	if err != nil || s.failed != nil {
		return frame.IgnoreClosedPipe(errors.Join(err, s.failed))
	}
	return a.Write(func(w io.Writer) error {
		_, err := fmt.Fprint(w, farewell(s, keep))
		return err
	})
}

// playInside makes the folders, plays the demonstration, and removes the folders.
func playInside(ctx context.Context, s *stage, keep bool) (err error) {
	if s.dir, err = os.MkdirTemp("", "perlica-demo-"); err != nil {
		return err
	}
	if !keep {
		defer func() { err = cmp.Or(err, os.RemoveAll(s.dir)) }()
	}
	s.project, s.stranger = filepath.Join(s.dir, "project"), filepath.Join(s.dir, "stranger")
	// The folder .perlica_config marks the project. Without this folder, a git work tree in a parent folder would be
	// the project.
	for _, dir := range []string{filepath.Join(s.project, ".perlica_config"), s.stranger} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	s.env = environ(s.Environ, filepath.Join(s.dir, "home"))
	return s.play(ctx)
}

// environ returns the environment of the children. Their Perlica home is the folder home, and temporary files go into
// the folder above. The children get no other settings from variables. The variables of package descent stay, because
// they mark the processes of agents.
func environ(own []string, home string) (list []string) {
	marks := []string{descent.Mark, descent.LimitVariable, descent.PersonVariable}
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "PERLICA_") || slices.Contains(marks, name) {
			list = append(list, kv)
		}
	}
	temp := filepath.Dir(home)
	return append(list, "PERLICA_HOME="+home, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
}

func farewell(s *stage, keep bool) string {
	text := "The folder of the demonstration was removed. 'perlica demo --keep' keeps it.\n"
	if keep {
		home := filepath.Join(s.dir, "home")
		text = "The folder of the demonstration stays. To look around in it:\n  cd " +
			agents.CommandLine([]string{s.project}) +
			"\n  export PERLICA_HOME=" + agents.CommandLine([]string{home}) + "\n"
	}
	return text + `
In a folder of your own:
  perlica provider list      your agents, and how to install them
  perlica run "what does this repository do?"
  perlica                    the chat
  perlica log show           the story of the last run
`
}
