// Package report tells a person what is on the log: it finds what a reference names, sums
// an event up in a line, tells a run as a story, lists the turns of a session, searches for
// words, and writes what is on record in forms that others read.
//
// It promises words for every type of event, whatever its payload turns out to hold. It
// refuses to write to the log, to decide and to print. What it returns may hold whatever an
// agent wrote, fit for no terminal; what it writes in a form is fit for that form.
//
// The one idea: nothing that is reported is stored anywhere but in the events. The index of
// the search is a view of them.
package report
