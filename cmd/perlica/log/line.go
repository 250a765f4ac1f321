package log

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/perlica/perlica/cmd/perlica/printing"
	"github.com/perlica/perlica/cmd/perlica/term"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/kernel/report"
)

// lineTime is how the time of an event is written, in local time.
const lineTime = "2006-01-02 15:04:05.000"

// typeWidth is the column of the types; the few that are longer push their line.
const typeWidth = 25

// eventLine is an event on one line, cut to width columns if width is not 0.
func eventLine(e event.Event, s term.Styles, width int) string {
	typ := runewidth.FillRight(string(e.Type), typeWidth)
	refs := lineRefs(e)
	text := printing.OneLine(report.Summarize(e))
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
		return "question " + printing.OneLine(printing.Short(e.Interaction))
	case e.Run != "":
		return "run " + printing.OneLine(printing.Short(e.Run))
	case e.Session != "":
		return "session " + printing.OneLine(printing.Short(e.Session))
	}
	return "-"
}
