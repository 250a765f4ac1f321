// Package hook starts programs of the user for events and questions.
//
// A hook gets each event of its types after the event is on disk. It delays nothing and changes nothing. A policy
// program judges a request of the agent before a person is asked. Its answer has the effect of a rule, and any failure
// means that a person is asked.
//
// The one idea is that the log is the queue of the hooks: a file has the number of the last event that a hook got. The
// process `perlica hook deliver` delivers the rest, one event after another, and a lock admits one such process for
// each hook. So no process waits for a hook, and the end of a process loses no event.
package hook

import (
	"slices"

	"github.com/perlica/perlica/eventlog/redact"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/program"
)

// These are the kinds of programs, in program.Start and in fact.HookFailed.
const (
	KindHook   = "hook"
	KindPolicy = "policy"
)

// Shown returns a command with masked secrets, for the record and for people.
func Shown(c program.Command) []string { return redact.Args(slices.Clone(c.Words)) }

// recordedFiles converts the files to the form in which a fact records them.
func recordedFiles(files []program.File) []fact.ProgramFile {
	list := []fact.ProgramFile{}
	for _, f := range files {
		list = append(list, fact.ProgramFile{Path: f.Path, SHA256: f.SHA256})
	}
	return list
}
