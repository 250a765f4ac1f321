package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Trial is one attempt of Check, made inside.
type Trial struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`  // the sandbox kept its promise
	Why  string `json:"why"` // the system's words
}

// Report describes a mode on this machine.
type Report struct {
	Mode      Mode     `json:"mode"`
	Available bool     `json:"available"`
	Mechanism string   `json:"mechanism,omitempty"`
	Version   string   `json:"version,omitempty"`
	Landlock  bool     `json:"landlock"`
	Why       string   `json:"why,omitempty"`  // the reason if it is not available
	Do        string   `json:"hint,omitempty"` // the next step in that case
	Trials    []Trial  `json:"trials"`
	Rules     []string `json:"rules"`
}

// Task tells the process inside what to try. Its paths exist outside.
type Task struct {
	Mode     Mode   `json:"mode"`
	Hidden   string `json:"hidden"`   // a file in a folder of Perlica
	Startup  string `json:"startup"`  // a hidden file of the home that does not exist
	Outside  string `json:"outside"`  // a file outside of the project that does not exist
	Inside   string `json:"inside"`   // a file in the project that does not exist
	Process  int    `json:"process"`  // a process outside
	Abstract string `json:"abstract"` // an abstract socket; empty means that the kernel cannot close it
}

// Check starts a process inside the sandbox and lets it try to break the rules. self is the command line that calls
// Try with the Task on its standard input. Check removes the files of the trials and the folders that New made.
func Check(spec Spec, self []string) Report {
	report := Report{Mode: spec.Mode, Trials: []Trial{}, Rules: []string{}}
	box, made, err := newSandbox(spec)
	defer func() {
		for _, dir := range slices.Backward(made) {
			_ = os.Remove(dir) // a folder that has files by now stays
		}
	}()
	if err == nil {
		err = box.Explain()
	}
	var unavailable *Error
	if errors.As(err, &unavailable) {
		report.Why, report.Do = unavailable.Why, unavailable.Do
		return report
	}
	report.Mechanism, report.Version, report.Landlock, report.Rules = "bubblewrap", box.Version(), box.Scoped, box.Rules
	name := ".perlica-sandbox-" + strconv.Itoa(os.Getpid())
	task := Task{
		Mode: spec.Mode, Hidden: filepath.Join(spec.Hide[0], name), Startup: filepath.Join(spec.Home, name),
		Outside: filepath.Join(filepath.Dir(spec.Work[0]), name), Inside: filepath.Join(spec.Work[0], name),
		Process: os.Getpid(),
	}
	if box.Scoped {
		task.Abstract = "@" + name
		if l, err := net.Listen("unix", task.Abstract); err == nil {
			defer func() { _ = l.Close() }() // nothing was read
		}
	}
	for _, path := range []string{task.Hidden, task.Startup, task.Outside, task.Inside} {
		defer func() { _ = os.Remove(path) }() // most do not exist
	}
	if err := os.WriteFile(task.Hidden, []byte("x"), 0o600); err != nil {
		report.Why = err.Error()
		return report
	}
	report.Trials, err = box.try(self, task)
	if err != nil {
		report.Why = err.Error()
		return report
	}
	report.Available = true
	for i := range report.Trials {
		t := &report.Trials[i]
		if _, err := os.Lstat(task.Outside); t.Name == trialOutside && !t.OK && err != nil {
			t.OK, t.Why = true, "the file is in a folder of the agent's own"
		}
		report.Available = report.Available && t.OK
	}
	return report
}

// try runs the task inside.
func (b *Sandbox) try(self []string, task Task) (trials []Trial, err error) {
	told, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	argv := b.Command("/", self[0], self[1:]...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(told)
	var out []byte
	done := make(chan struct{})
	go func() { // on a thread of its own, which Restrict changes for good
		defer close(done)
		if err = b.Restrict(); err == nil {
			out, err = cmd.Output()
		}
	}()
	<-done
	if err == nil {
		err = json.Unmarshal(out, &trials)
	}
	if err != nil {
		err = fmt.Errorf("the trial in the sandbox failed: %w", err)
	}
	return trials, err
}

const trialOutside = "folders outside of the project cannot be written"

// Try makes the attempts of a task. It runs inside the sandbox.
func Try(t Task) (trials []Trial) {
	refused := func(name string, err error) {
		why := "it worked"
		if err != nil {
			why = err.Error()
		}
		trials = append(trials, Trial{name, err != nil, why})
	}
	_, err := os.ReadFile(t.Hidden)
	refused("Perlica's folders are hidden", err)
	refused("processes outside cannot be signalled", signal(t.Process))
	refused("nothing new can be made directly in the home", create(t.Startup))
	if t.Abstract != "" {
		c, err := net.Dial("unix", t.Abstract)
		if err == nil {
			_ = c.Close() // the connection is the fault
		}
		refused("abstract sockets are closed", err)
	}
	if t.Mode != Protect {
		refused(trialOutside, create(t.Outside))
	}
	err = create(t.Inside)
	last := Trial{Name: "the project can be written", OK: err == nil, Why: "it worked"}
	if err != nil {
		last.Why = err.Error()
	}
	return append(trials, last)
}

func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	return err
}

func signal(pid int) error {
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.Signal(0))
	}
	return err
}
