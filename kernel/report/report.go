// Package report describes the log to people. It finds the object that a reference names, summarizes an event in a
// line, and tells a run as a story. It lists the turns of a session, searches for words, and writes the record in other
// formats.
//
// Every event has a description, even if its payload is unreadable. The package does not write to the log, decide or
// print. Its results may contain any text of an agent, which must be escaped for a terminal. Each writer of a format
// escapes the texts for that format.
//
// Facts are stored only in the events. The index for the search is a view of them.
package report
