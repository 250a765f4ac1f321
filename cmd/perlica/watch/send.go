package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/filelock"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/queue"
	"github.com/perlica/perlica/kernel/sessions"
)

// SendCommand returns the command that queues an input for the chat of another process.
func SendCommand(c *frame.App) *cobra.Command {
	a := &app{c}
	var id string
	var files []string
	cmd := &cobra.Command{
		Use: "send SESSION (TEXT… | -)", Annotations: frame.PersonOnly.Annotation(),
		Short: "Put an input into the queue of a chat in another terminal",
		Long: `Put an input into the queue of a session that is open in a chat. The chat treats it like its
other queued inputs: it sends the input after an answer, or when the person at the chat
confirms it. The input is on record when this command returns. The command does not wait for
the answer: 'perlica watch SESSION' shows it. With - the text comes from standard input.

If no chat has the session open, the command fails: use 'perlica run -s SESSION' instead.`,
		Example: `  perlica send refactoring "and run the tests"
  git diff | perlica send --input-id "$id" 3f2a91bc -`,
		Args: frame.AtLeast("SESSION", "TEXT"), ValidArgsFunction: frame.CompleteFirst(a.CompleteSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.inputText(args[1:])
			if err != nil {
				return frame.ExitUsage.With(err)
			}
			return a.sendInput(cmd.Context(), args[0], event.InputID(id), text, files)
		},
	}
	cmd.Flags().StringVar(&id, "input-id", "", "the input's `id`; an id that was used before is refused")
	cmd.Flags().StringArrayVar(&files, "attach", nil, "add this `file` to the input")
	return cmd
}

// inputText returns the text of the arguments. If the only argument is "-", it returns standard input.
func (a *app) inputText(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(a.Stdin, frame.MaxInput+1))
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		text = strings.TrimPrefix(string(b), frame.ByteOrderMark)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New("there is no text to send")
	case !utf8.ValidString(text), len(text) > frame.MaxInput:
		return "", fmt.Errorf("the text is no UTF-8, or has more than %d bytes", frame.MaxInput)
	}
	return text, nil
}

func (a *app) sendInput(ctx context.Context, ref string, id event.InputID, text string, files []string) error {
	m := fact.MessageQueued{Text: text, Source: "send", Sender: frame.UserName(a.Getenv)}
	for _, f := range files {
		path, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		m.Attachments = append(m.Attachments, path)
	}
	if err := (kernel.Input{ID: id, Source: m.Source}).CheckID(); err != nil {
		return frame.ExitUsage.With(err)
	}
	if id == "" {
		id = event.InputID(uuid.Must(uuid.NewV7()).String())
	}
	var s sessions.Session
	err := a.ViewingSessions(ctx, func(view *sessions.View, _ *store.Reader) (err error) {
		s, err = view.Find(ctx, ref)
		return err
	})
	if err != nil {
		return err
	}
	return a.Writing(ctx, func(r *kernel.Runner, p *project.Project) error {
		if err := a.explainNoChat(p, s); err != nil {
			return err
		}
		if p.Config.RedactBeforeHash {
			redactor, err := p.Redactor()
			if err != nil {
				return err
			}
			if redactor.Text(text) != text {
				return errors.New("the log masks a part of this text, so the chat cannot read it there; type it in the chat")
			}
		}
		if _, err := r.Digest(kernel.Input{Text: text, Attachments: m.Attachments}); err != nil {
			return frame.ExitUsage.With(err) // The file that the user named cannot be read.
		}
		if err := queue.Add(ctx, r.Log(), s.ID, id, m); err != nil {
			return err
		}
		q := queue.Queue{Session: s.ID}
		if err := q.Read(ctx, &r.Log().Reader); err != nil {
			return err
		}
		place := "sent by now"
		if i := slices.IndexFunc(q.Inputs, func(in queue.Input) bool { return in.ID == id }); i >= 0 {
			place = fmt.Sprintf("number %d in its queue", i+1)
		}
		return a.Say("input %s is on record, %s; to follow the session: perlica watch %s", id, place,
			frame.ShortID(string(s.ID)))
	})
}

// explainNoChat returns an error if no chat has the session open. The error tells the next step.
func (a *app) explainNoChat(p *project.Project, s sessions.Session) error {
	paths, err := p.Workspace.Context(p.Config.ContextID)
	if err != nil {
		return err
	}
	lock := filelock.Session(paths.Locks, string(s.ID))
	held, err := filelock.Held(lock)
	if err != nil {
		return err
	}
	by := filelock.Holder(lock).By
	if held && by == "chat" {
		return nil
	}
	name := frame.SessionName(s, frame.ShortID(s.ID))
	if !held {
		return frame.WithHint(fmt.Errorf("session %s is not open in a chat; nothing was queued", name),
			"to send it now: perlica run -s %s …", frame.ShortID(s.ID))
	}
	return frame.WithHint(fmt.Errorf("session %s is open, but not in a chat: a %s has it; nothing was queued", name,
		cmp.Or(by, "run")),
		"to send it afterwards: perlica run --wait -s %s …", frame.ShortID(s.ID))
}
