// Package log has the commands that read, check and maintain the event log.
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

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// TailCommand returns the command log tail.
func TailCommand(a *frame.App) *cobra.Command { return (&app{a}).logTailCommand() }

// Command returns the command log with its subcommands.
func Command(c *frame.App) *cobra.Command {
	a := &app{c}
	cmd := frame.Group("log", "Read, search, verify and prune the event log",
		`The event log holds every input and its sender, every line between Perlica and the
agent, every question with its answer, and the end of each call. It is append-only:
nothing on it is changed or reordered. These commands read it. Only prune removes
something, and records this on the log. See docs/log.md and docs/evidence.md.`,
		a.logTailCommand(), a.logRunsCommand(), a.logShowCommand(), a.logSearchCommand(), a.logVerifyCommand(),
		a.logCheckpointCommand(), a.logProveCommand(), a.logKeyCommand(), a.logOpenCommand(), a.logResolveCommand(),
		a.logStatsCommand(), export.Command(a.App), a.logImportCommand(), a.logPruneCommand(), a.logTrustCommand(),
		a.logListCommand())
	cmd.PersistentFlags().BoolVar(&a.UserFlag, "user", false,
		"use your own log, which belongs to no project and records logins, for example")
	return cmd
}

// lineTime is the format of an event's local time.
const lineTime = "2006-01-02 15:04:05.000"

// storyTime is the format of a run's time at the head of its story. It includes the time zone.
const storyTime = lineTime + " MST"

// typeWidth is the width of the column with the event types. After a longer type, the rest of the line moves to the
// right.
const typeWidth = 25

// eventLine returns an event as one line, cut to width columns. If width is 0, the line is not cut.
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

// lineRefs returns the id of the event's question. Without a question it returns the run, and without a run the
// session.
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

// parseKept parses a checkpoint that a user has stored outside of the log, for example in a Git tag, a ticket or a
// chat. Such places change line ends and blank space around the text, so parseKept reverts these changes first.
func parseKept(text []byte) (evidence.Checkpoint, error) {
	return evidence.ParseCheckpoint(normalizeNote(text))
}

// normalizeNote reverts the changes that mail, chats and other systems make to the white space of a signed text.
func normalizeNote(text []byte) string {
	lines := strings.ReplaceAll(string(text), "\r\n", "\n")
	return strings.Trim(lines, " \t\n") + "\n"
}

const (
	// maxNote is the largest accepted size of a checkpoint with its cosignatures, in bytes.
	maxNote = 1 << 20
	// maxProof is the largest accepted size of a proof, in bytes. The largest proof contains one line of 64 MiB,
	// escaped and in base64.
	maxProof = 1 << 29
)

// readNamed reads a file that the command line names. The name "-" means standard input. The parameter "most" is the
// largest accepted size in bytes.
func (a *app) readNamed(name string, most int64) ([]byte, error) {
	if name != "-" {
		return readGiven(name, most)
	}
	b, err := io.ReadAll(io.LimitReader(a.Stdin, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("standard input has more than %d MiB, which is too much for its purpose", most>>20)
	}
	return b, err
}

// readGiven reads a file. The parameter "most" is the largest accepted size in bytes. If the file is a pipe without a
// writer, readGiven does not wait for a writer and returns no bytes.
func readGiven(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // The file was only read, so a failed close loses no data.
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
		return nil, fmt.Errorf("%s has more than %d MiB, which is too much for its purpose", name, most>>20)
	case len(b) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return b, nil
}

// verifiers parses the verifier keys that the user gave for a flag.
func verifiers(keys []string, flag string) (list []note.Verifier, err error) {
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			continue // The same key twice would make signatures ambiguous, so a repeated key is left out.
		}
		v, err := evidence.NewVerifier(k)
		if err != nil {
			return nil, frame.WithHint(frame.UsageErrorf("%s: %w", flag, err),
				"a verifier key is one word, such as 'perlica log key show' prints")
		}
		list = append(list, v)
	}
	return list, nil
}
