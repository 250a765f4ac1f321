package shell

import (
	"slices"
	"strings"
)

// A setting is a program that changes the machine: its power, services, kernel, mounts or
// network. Its words show whether it only reads.
type setting struct {
	shows []string // with one of these as first operand or option it only shows
	bare  bool     // without operands it only shows
	acts  []string // if not empty, it changes something only with one of these
}

var settings = table("settings", func(said string) setting {
	m := members(said, "shows", "bare", "acts")
	return setting{shows: m["shows"], bare: m["bare"] != nil, acts: m["acts"]}
})

// machine asks about changes of the machine. It says whether the program is known.
func (w *walker) machine(name string, fs []field) bool {
	s, found := settings(name)
	if !found && !listed("changing", name) {
		return false
	}
	args := fs[1:]
	shows := len(args) == 0 && s.bare || len(args) == 1 && (args[0].text == "--help" || args[0].text == "--version")
	if len(s.acts) > 0 {
		shows = !slices.ContainsFunc(args, func(f field) bool {
			return slices.ContainsFunc(s.acts, func(act string) bool {
				word, _, _ := strings.Cut(f.text, "=")
				return word == act || strings.EqualFold(word, act) && strings.HasPrefix(act, "/") || inOrder([]string{act}, []string{f.text}, false)
			})
		}) || len(args) == 0
	}
	for i, f := range args {
		if len(s.acts) == 0 && slices.Contains(s.shows, f.text) && (i == 0 || strings.HasPrefix(args[i-1].text, "-") || strings.HasPrefix(f.text, "-") || name == "service" && i == 1) {
			shows = true
		}
	}
	if name == "systemctl" && len(args) > 0 {
		shows = shows || among(args, s.shows...)
	}
	if !shows {
		w.ask("changes the machine or what runs on it: %s", shown(fs))
	}
	return true
}

// kill asks about signals to everything, or to the first process.
func (w *walker) kill(name string, fs []field) {
	all := false
	signal := true // the first -N is a signal
	for _, f := range fs[1:] {
		switch {
		case f.text == "--":
			signal = false
		case name == "kill" && (f.text == "-1" && !signal || f.text == "1" || f.text == "0" && !signal):
			all = true
		case name == "kill" && strings.HasPrefix(f.text, "-"):
			signal = false
		case name != "kill" && (f.text == "-u" || f.text == "-U" || f.text == "--user" || f.text == "--euid" || f.text == "-v" || f.text == "--inverse" || f.text == "." || f.text == ".*"):
			all = true
		case name != "kill" && slices.Contains([]string{"systemd", "init", "sshd", "launchd", "perlica"}, f.text):
			all = true
		}
	}
	if all {
		w.ask("ends processes that are not its own: %s", shown(fs))
	}
}

// container asks about containers that reach the whole machine.
func (w *walker) container(fs []field) {
	for i, f := range fs[1:] {
		next := ""
		if i+2 < len(fs) {
			next = fs[i+2].text
		}
		name, value, has := strings.Cut(f.text, "=")
		if !has {
			value = next
		}
		lower := strings.ToLower(value)
		open := false
		switch name {
		case "--privileged":
			open = !has || value != "false"
		case "--cap-add":
			open = slices.Contains([]string{"all", "sys_admin", "cap_sys_admin", "sys_module", "sys_ptrace", "sys_rawio", "dac_read_search"}, lower)
		case "--pid", "--ipc", "--userns", "--uts", "--cgroupns":
			open = value == "host"
		case "--device":
			open = device(strings.SplitN(value, ":", 2)[0]) == diskDevice && !strings.HasPrefix(value, "/dev/nvidia") && !strings.HasPrefix(value, "/dev/kfd")
		case "--security-opt":
			open = strings.Contains(lower, "unconfined") || strings.Contains(lower, "disable")
		case "-v", "--volume", "--mount":
			open = w.mounts(value)
		default:
			if strings.HasPrefix(name, "-v") && len(f.text) > 2 && f.text[2] == '/' {
				open = w.mounts(f.text[2:])
			}
		}
		if open {
			w.ask("a container that reaches the whole machine: %s", shown(fs))
			return
		}
	}
}

// mounts says whether a volume gives a container the root, the home, a system directory
// or the socket of the service that starts containers.
func (w *walker) mounts(volume string) bool {
	source, _, _ := strings.Cut(volume, ":")
	if strings.Contains(volume, "source=") || strings.Contains(volume, "src=") {
		for part := range strings.SplitSeq(volume, ",") {
			if key, value, _ := strings.Cut(part, "="); key == "source" || key == "src" {
				source = value
			}
		}
	}
	source = w.home(source)
	if source == "~" {
		source = w.place.Home
	}
	if !strings.HasPrefix(source, "/") {
		return false
	}
	target := slashPath(source)
	if strings.HasSuffix(target, ".sock") || isPrivate(target) || w.place.owns(target, false) {
		return true
	}
	if what, _ := w.place.loss(target, false); what != "" && target != w.place.Dir {
		return !strings.HasSuffix(volume, ":ro") || target == "/"
	}
	system := []string{"/etc", "/usr", "/boot", "/sys", "/proc", "/var/run", "/run", "/bin", "/sbin", "/lib", "/root"}
	return !strings.HasSuffix(volume, ":ro") && slices.ContainsFunc(system, func(dir string) bool { return within(dir, target) })
}
