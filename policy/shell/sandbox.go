package shell

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/perlica/perlica/eventlog/message"
)

// Sandbox describes a sandbox in which a process can write only to its project. Writes and Reads follow the symbolic
// links in a path.
type Sandbox struct {
	Mode   string
	Writes func(path string) bool // reports whether a process inside can write to a path
	Reads  func(path string) bool // reports whether a process inside can read a path
	// Connects reports whether a process inside can connect to a host. The port 0 means any port.
	Connects func(host string, port int) bool
}

// ToolReads judges a tool that reads the file p. The verdict is AlwaysAsked if the sandbox hides the file, and Ordinary
// otherwise.
func (at Place) ToolReads(p string) Verdict {
	if s := at.Sandbox; s != nil && !s.Reads(p) {
		return stoppedBy(whyToolHidden.With(s.Mode, p))
	}
	return Verdict{Tier: Ordinary}
}

// ToolWrites judges a tool that writes the file p. The verdict is AlwaysAsked if the sandbox does not let it write
// there, and Ordinary otherwise.
func (at Place) ToolWrites(p string) Verdict {
	if s := at.Sandbox; s != nil && !s.Writes(p) {
		return stoppedBy(whyToolReadOnly.With(s.Mode, p))
	}
	return Verdict{Tier: Ordinary}
}

// stoppedBy returns the verdict for an action that the sandbox will stop.
func stoppedBy(why *message.Text) Verdict { return Verdict{Tier: AlwaysAsked, Stopped: tidied(why)} }

// stop records the reason for which the sandbox will stop the command. It keeps the first reason.
func (w *walker) stop(why *message.Text) {
	if w.stopped == nil && w.refusedOnly == 0 {
		w.stopped = why
	}
}

// stopWrite calls stop if the sandbox does not let a command write to the target, a path or a pattern.
func (w *walker) stopWrite(target string, glob bool, st *state) {
	s := w.place.Sandbox
	if glob {
		target = fixedPrefix(target)
	}
	if s == nil || st.far || device(target) != notDevice || s.Writes(target) {
		return
	}
	// In the sandbox, an own /tmp replaces each temporary directory that is not writable. So a write there
	// succeeds.
	if !slices.ContainsFunc(w.place.Temp, func(t string) bool { return within(t, target) && !s.Writes(t) }) {
		w.stop(whyReadOnly.With(s.Mode, target))
	}
}

// stopRead calls stop if the sandbox hides the file f from a command.
func (w *walker) stopRead(f field, st *state) {
	s := w.place.Sandbox
	if s == nil || st.far || f.vague || f.text == "" || len(f.text) > maxPath {
		return
	}
	for _, d := range st.dirs {
		target, ok := w.target(f, d)
		if f.glob {
			target = fixedPrefix(target)
		}
		if ok && !d.doubt && !s.Reads(target) {
			w.stop(whyHidden.With(s.Mode, target))
		}
	}
}

// maxRead is the maximum number of words in which judgeSandbox looks for files and hosts. maxPath is the maximum length
// of a path in bytes.
const (
	maxRead = 200
	maxPath = 4096
)

// judgeSandbox calls stop if the sandbox will stop a command. The reason may be that the program needs something
// outside, or that a word names a hidden file or a host that is not listed.
func (w *walker) judgeSandbox(name string, fs []field, st *state) {
	s := w.place.Sandbox
	if s == nil || st.far || w.refusedOnly > 0 || asksForHelp(fs[1:]) {
		return
	}
	if matchesPhrase("outside", name, fs) {
		w.stop(whyNotInside.With(name, s.Mode))
	}
	for _, address := range w.addressesOf(name, fs) {
		if host, port := hostOf(address); host != "" && !s.Connects(host, port) {
			w.stop(whyNotListed.With(s.Mode, host))
		}
	}
	words := fs[1:min(len(fs), maxRead)]
	switch {
	case listed("sayers", name):
		return
	case listed("searchers", name):
		if i := slices.IndexFunc(words, isOperand); i >= 0 {
			words = slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	for i, f := range words {
		if option, _, _ := strings.Cut(fs[i].text, "="); listed("messageOptions", option) {
			continue
		}
		text := f.text
		for range 3 { // FILE, @FILE, NAME=@FILE
			g := f
			if text = w.home(text); text != f.text {
				g = *part(f, text)
			}
			if isOperand(g) {
				w.stopRead(g, st)
			}
			at := strings.IndexAny(text, "@=<")
			if at < 0 {
				break
			}
			text = text[at+1:]
		}
	}
}

// isOperand reports whether a word is not an option.
func isOperand(f field) bool { return !strings.HasPrefix(f.text, "-") }

// addressesOf returns the addresses to which a command connects, as they stand in its words.
func (w *walker) addressesOf(name string, fs []field) (list []string) {
	valued, fetches := fetchers(name)
	words, plain := fs[1:min(len(fs), maxRead)], fetches || listed("talkers", name)
	switch {
	case plain:
		p, _ := w.row(name)
		for _, r := range p.roles {
			if short := strings.TrimPrefix(r.pattern, "-"); len(short) == 1 {
				valued += " " + short
			} else {
				valued += " " + r.pattern
			}
		}
		remote, runs := wrappers(name)
		opts, operands := options(words, valued+" "+remote.valued, runs)
		if runs { // after the name of the machine, a command for that machine follows
			operands = operands[:min(1, len(operands))]
		}
		words = append(values(opts, "--url"), operands...)
	case !matchesPhrase("connects", name, fs):
		return nil
	}
	for _, f := range words {
		text := f.text
		if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = value
		}
		_, machine, named := strings.Cut(text, "@") // USER@HOST:PATH
		copies := listed("copiers", name) || name == "git" && named
		if !f.vague && (isURL(text) || copies && isRemote(text) ||
			plain && (farHost().MatchString(text) || farHost().MatchString(machine))) {
			list = append(list, text)
		}
	}
	return list
}

// hostOf returns the host and the port of an address: URL, HOST, HOST:PORT/PATH or USER@HOST:PATH. The host is "" for
// this machine and for an address without a host. The port is 0 if the address does not name a port.
func hostOf(address string) (host string, port int) {
	if u, err := url.Parse(address); isURL(address) && err == nil {
		port = map[string]int{"http": 80, "https": 443, "git+https": 443}[u.Scheme]
		if n, err := strconv.Atoi(u.Port()); err == nil {
			port = n
		}
		host = u.Hostname()
	} else {
		_, host, _ = strings.Cut("@"+address[strings.LastIndexByte(address, '@')+1:], "@")
		host, _, _ = strings.Cut(host, "/")
		var rest string
		host, rest, _ = strings.Cut(host, ":")
		port, _ = strconv.Atoi(rest) // 0 without a number
	}
	if local(literal(host)) {
		return "", 0
	}
	return host, port
}
