package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// Differs describes the first difference between a reported call and the approved requests, or returns nil. A field
// that the reported call omits is not a difference. A shell around an approved command, as in sh -c, is not a
// difference either. If Shows returns false, the content of a file differs.
func Differs(readings []Reading, reported ToolCall, at shell.Place) *message.Text {
	read := ReadToolCall(reported, at)
	var approved []Request
	for _, r := range readings {
		approved = append(approved, r.Request)
	}
	got := read.Request
	for _, c := range got.Commands {
		if !slices.ContainsFunc(approved, func(r Request) bool { return r.Runs(c, at) }) {
			return ranOther.With(c.String())
		}
	}
	for _, p := range got.Paths {
		if !slices.ContainsFunc(approved, func(r Request) bool { return hasPath(r, got, p) }) {
			return touchedOther.With(p)
		}
	}
	for _, f := range got.Fields {
		if !slices.ContainsFunc(approved, func(r Request) bool { return hasField(r, f) }) {
			return otherField.With(f.Name)
		}
	}
	if !Shows(readings, read, at) {
		return otherContent
	}
	if acting(got.Kind) && !slices.ContainsFunc(approved, func(r Request) bool { return !milder(r.Kind, got.Kind) }) {
		return otherKind.With(shell.KindText(got.Kind))
	}
	if renamed(approved, reported) {
		return ranOther.With(reported.Title)
	}
	return nil
}

// hasPath reports whether the approved request r covers the path p of the reported call got. The starting directory of
// a command is always covered. An approved read or search covers any file that is only read, because the agent cannot
// know the found files in advance.
func hasPath(r, got Request, p string) bool {
	if len(got.Commands) > 0 && (p == r.Place.Dir || slices.ContainsFunc(got.Commands,
		func(c shell.Command) bool { return c.Dir == p })) {
		return true
	}
	if len(r.Commands) > 0 && p == r.Place.Dir || (r.Kind == "read" || r.Kind == "search") && !acting(got.Kind) {
		return true
	}
	return r.Names(p)
}

// hasField reports whether the approved request r has the reported field f with the same value. A field that is new in
// the report is a difference only if its role is Unread or Grave.
func hasField(r Request, f Field) bool {
	i := slices.IndexFunc(r.Fields, func(have Field) bool { return plainName(have.Name) == plainName(f.Name) })
	switch {
	case f.Role == Inert, f.Role == Grave && f.Name == "title": // a title may change at any time
		return true
	case i < 0:
		return f.Role != Unread && f.Role != Grave
	}
	return r.Fields[i].Value == f.Value
}

func acting(kind string) bool {
	return slices.Contains([]string{"execute", "edit", "delete", "move"}, kind)
}

// milder reports whether a tool of the first kind does less than a tool of the second kind, or something different.
func milder(kind, than string) bool {
	if acting(kind) && kind != than {
		return true
	}
	return slices.Contains([]string{"read", "search", "think", "fetch", "switch_mode"}, kind)
}

// renamed reports whether an approved title was the command, and the reported title is another command. A reported
// title such as "out.txt" or a description is not a command.
func renamed(approved []Request, reported ToolCall) bool {
	title := strings.TrimSpace(reported.Title)
	if title == "" {
		return false
	}
	was, new := false, true
	for _, r := range approved {
		for _, c := range r.Commands {
			// The variable "was" becomes true if the title of an approved request is its command. The variable "new"
			// stays true while the reported title equals no approved command.
			was = was || shell.Command{Text: r.Title}.SameText(c)
			new = new && !shell.Command{Text: title}.SameText(c)
		}
		new = new && !slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Value == title })
	}
	first, _, _ := strings.Cut(title, " ")
	return was && new && programs()[filepath.Base(first)]
}
