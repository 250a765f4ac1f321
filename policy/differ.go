package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/policy/shell"
)

// Differs describes the first difference between a reported call and the approved requests, or returns nil. A field
// that the report omits is not a difference. A shell around the same command is not one either.
func Differs(approved []Request, reported ToolCall, at shell.Place) *message.Text {
	got := ReadToolCall(reported, at).Request
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
	if acting(got.Kind) && !slices.ContainsFunc(approved, func(r Request) bool { return !milder(r.Kind, got.Kind) }) {
		return otherKind.With(shell.KindText(got.Kind))
	}
	if renamed(approved, reported) {
		return ranOther.With(reported.Title)
	}
	return nil
}

// hasPath reports whether a path belongs to the request, or is only the directory in which its command starts. A read
// or a search may report any file, because the agent cannot know the found files in advance.
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

// hasField reports whether a reported field has the value that the request had. A new field counts as a difference
// only if it is not understood.
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

// milder reports whether a tool of one kind does less than a tool of another kind.
func milder(kind, than string) bool {
	if acting(kind) && kind != than {
		return true
	}
	return slices.Contains([]string{"read", "search", "think", "fetch", "switch_mode"}, kind)
}

// renamed reports whether a title that was the command became another command. Other titles, such as "out.txt" or a
// description, do not count.
func renamed(approved []Request, reported ToolCall) bool {
	title := strings.TrimSpace(reported.Title)
	if title == "" {
		return false
	}
	was, new := false, true
	for _, r := range approved {
		for _, c := range r.Commands {
			// was is true if an approved title was a command. new stays true if the reported title is no approved
			// command.
			was = was || shell.Command{Text: r.Title}.SameText(c)
			new = new && !shell.Command{Text: title}.SameText(c)
		}
		new = new && !slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Value == title })
	}
	first, _, _ := strings.Cut(title, " ")
	return was && new && programs()[filepath.Base(first)]
}
