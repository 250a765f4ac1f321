// Package report describes the log to people. It finds the object that a reference names, sums up an event in a
// line, tells a run as a story, and lists the turns of a session. It also searches for words, and writes the record
// in other formats.
//
// Every type of event has a description, whatever its payload holds. The package does not write to the log, decide
// or print. Its results may hold any text of an agent, which a terminal must not get unescaped. Each writer of a
// format escapes the texts for that format.
//
// The main idea is that reported facts are stored only in the events. The index of the search is a view of them.
package report
