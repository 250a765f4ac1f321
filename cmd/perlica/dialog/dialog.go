// Package dialog shows a turn at a terminal or in a pipe. It has the turn's flags, prints the answer and the
// progress, and asks the person the agent's questions. The turn runs in this process, in another process or on a
// team's worker. The commands run, chat and watch share the package.
//
// The kernel starts and ends the agents, and package dialog never does.
package dialog
