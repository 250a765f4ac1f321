// Package log holds the commands that read, check and maintain the event log.
package log

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/cmd/perlica/export"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/kernel/report"
)

// app is an invocation, with the commands of this package as its methods.
type app struct{ *frame.App }

// TailCommand returns the command that shows and follows the newest events.
func TailCommand(a *frame.App) *cobra.Command { return (&app{a}).logTailCommand() }

// Command returns the command with those below it.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	cmd := frame.Group("log", "Read, search, verify and prune the event log",
		`The event log is the record of everything: who asked what, every line between
Perlica and the agent, every question and who answered it, and how each call ended.
It is append-only: nothing on it is changed or reordered. These commands read it; only
prune takes something away, and says so on the log. See docs/log.md and docs/evidence.md.`,
		a.logTailCommand(), a.logRunsCommand(), a.logShowCommand(), a.logSearchCommand(), a.logVerifyCommand(),
		a.logCheckpointCommand(), a.logProveCommand(), a.logKeyCommand(), a.logOpenCommand(), a.logResolveCommand(),
		a.logStatsCommand(), export.Command(a.App), a.logImportCommand(), a.logPruneCommand(), a.logTrustCommand(), a.logListCommand())
	cmd.PersistentFlags().BoolVar(&a.UserFlag, "user", false, "the log of what belongs to no project, below your own state")
	return cmd
}

// lineTime is how the time of an event is written, in local time.
const lineTime = "2006-01-02 15:04:05.000"

// storyTime is how the time of a run is written above its story, with its zone.
const storyTime = lineTime + " MST"

// typeWidth is the column of the types; the few that are longer push their line.
const typeWidth = 25

// eventLine is an event on one line, cut to width columns if width is not 0.
func eventLine(e event.Event, s screen.Styles, width int) string {
	typ := runewidth.FillRight(string(e.Type), typeWidth)
	refs := lineRefs(e)
	text := frame.OneLine(report.Summarize(e, nil))
	plain := fmt.Sprintf("%s %6d  %s  %s", e.Time.Local().Format(lineTime), e.Seq, typ, refs)
	if width > 0 {
		text = runewidth.Truncate(text, max(width-runewidth.StringWidth(plain)-2, 20), "…")
	}
	switch {
	case e.Class == event.Frame:
		typ = s.Dim(typ)
	case e.Type == event.ProviderError, e.Type == event.OutcomeUnknown, e.Type == event.PolicyUnasked,
		e.Type == event.ReplyFailed:
		typ = s.Red(typ)
	default:
		typ = s.Cyan(typ)
	}
	line := fmt.Sprintf("%s %6d  %s  %s  %s", s.Dim(e.Time.Local().Format(lineTime)), e.Seq, typ, s.Dim(refs), text)
	return strings.TrimRight(line, " ")
}

// lineRefs names what an event is about: its question, else its run, else its session.
func lineRefs(e event.Event) string {
	switch {
	case e.Interaction != "":
		return "question " + frame.OneLine(frame.ShortID(e.Interaction))
	case e.Run != "":
		return "run " + frame.OneLine(frame.ShortID(e.Run))
	case e.Session != "":
		return "session " + frame.OneLine(frame.ShortID(e.Session))
	}
	return "-"
}

// parseKept reads a checkpoint that was kept elsewhere. A tag, a ticket or a chat adds empty lines
// around it, takes the last line's end, or ends lines in its own way; nothing of that is signed.
func parseKept(text []byte) (evidence.Checkpoint, error) {
	return evidence.ParseCheckpoint(asWritten(text))
}

// asWritten undoes what mail, chats and other systems do to a text that ends with a signature.
func asWritten(text []byte) string {
	lines := strings.ReplaceAll(string(text), "\r\n", "\n")
	return strings.Trim(lines, " \t\n") + "\n"
}

const (
	// maxNote is more than a checkpoint with all its cosignatures has.
	maxNote = 1 << 20
	// maxProof is as much as a proof of a line of 64 MiB can have, escaped and in base64.
	maxProof = 1 << 29
)

// given reads what the command line names, a file or, as -, standard input.
func (a *app) given(name string, most int64) ([]byte, error) {
	if name != "-" {
		return readGiven(name, most)
	}
	b, err := io.ReadAll(io.LimitReader(a.Stdin, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("standard input has more than %d MiB, which is too much for what it should be", most>>20)
	}
	return b, err
}

// readGiven reads a file that the command line names, if it has not more than most bytes. A pipe
// without a writer is empty, and is not waited for.
func readGiven(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read from only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b []byte
	if info.Size() <= most {
		b, err = io.ReadAll(io.LimitReader(f, most+1))
	}
	switch {
	case err != nil:
		return nil, err
	case info.Size() > most || int64(len(b)) > most:
		return nil, fmt.Errorf("%s has more than %d MiB, which is too much for what it should be", name, most>>20)
	case len(b) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return b, nil
}

// verifiers reads verifier keys that a flag gave.
func verifiers(keys []string, flag string) (list []note.Verifier, err error) {
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			continue // a key that is known twice is ambiguous to those who look for it
		}
		v, err := evidence.NewVerifier(k)
		if err != nil {
			return nil, frame.WithHint(frame.UsageErrorf("%s: %w", flag, err), "a verifier key is one word, such as 'perlica log key show' prints")
		}
		list = append(list, v)
	}
	return list, nil
}
