package shell

import "slices"

// trap judges trap ACTION SIGNAL…: the action may run at any time from now on, and at the end.
func (w *walker) trap(args []field, st *state) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	later := st.fork()
	w.nested(args[0].text, args[0], later, flow{})
	st.join(st.clone(), later)
	st.traps = withTrap(st.traps, args[0])
}

// withTrap adds an action unless it is there already.
func withTrap(traps []field, t field) []field {
	if slices.ContainsFunc(traps, func(have field) bool { return have.text == t.text }) {
		return traps
	}
	return append(slices.Clip(traps), t)
}

// finish judges the traps of a shell where a list of statements ends: the shell may end there, too.
func (w *walker) finish(st *state) {
	for _, t := range st.traps {
		w.nested(t.text, t, st.fork(), flow{})
	}
}
