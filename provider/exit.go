package provider

import "fmt"

// Exit says how an agent's process ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // that signal; empty if none did
	Forced string // what it took beyond closing its input: "", "SIGTERM" or "SIGKILL"
	Rest   int    // processes that it left behind and that were ended too
}

// Exit returns how the process ended. It is complete once End has returned; ok is false while
// the process runs.
func (c *Conn) Exit() (e Exit, ok bool) {
	e.Code, e.Signal, ok = c.proc.ExitState()
	if !ok {
		return Exit{}, false
	}
	f := c.proc.Forced()
	switch {
	case f.Kill && e.Code != 0: // with 0 it left in that moment
		e.Forced = "SIGKILL"
	case f.Term:
		e.Forced = "SIGTERM"
	}
	e.Rest = len(f.Rest)
	return e, true
}

// String is one line in words.
func (e Exit) String() string {
	s := fmt.Sprintf("left by itself with code %d", e.Code)
	switch {
	case e.Forced != "":
		s = "stayed when its input was closed; ended by " + e.Forced
	case e.Signal != "":
		s = "was ended by " + e.Signal
	}
	if e.Rest == 1 {
		s += "; 1 process that it left behind was ended too"
	} else if e.Rest > 1 {
		s += fmt.Sprintf("; %d processes that it left behind were ended too", e.Rest)
	}
	return s
}
