package sandbox

import (
	"bufio"
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
	"strings"
	"syscall"

	"github.com/perlica/perlica/provider/proxy"
)

// Trial is the result of one attempt that Check made inside the sandbox.
type Trial struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`  // the sandbox kept its promise
	Why  string `json:"why"` // the error of the system, or "it worked"
}

// Report says whether a mode of the sandbox works on this machine.
type Report struct {
	Mode      Mode     `json:"mode"`
	Available bool     `json:"available"`
	Mechanism string   `json:"mechanism,omitempty"`
	Version   string   `json:"version,omitempty"`
	Landlock  bool     `json:"landlock"`
	Why       string   `json:"why,omitempty"`  // the reason, if the mode is not available
	Do        string   `json:"hint,omitempty"` // the next step for the person, if the mode is not available
	Trials    []Trial  `json:"trials"`
	Rules     []string `json:"rules"`
}

// Task tells the process inside the sandbox the attempts that it must make. The paths are valid outside.
type Task struct {
	Mode     Mode   `json:"mode"`
	Hidden   string `json:"hidden"`   // a file in a folder of Perlica
	Startup  string `json:"startup"`  // a hidden file of the home that does not exist
	Outside  string `json:"outside"`  // a file outside of the project that does not exist
	Inside   string `json:"inside"`   // a file in the project that does not exist
	Process  int    `json:"process"`  // the number of a process outside
	Abstract string `json:"abstract"` // an abstract socket outside; empty if the kernel cannot close abstract sockets

	Listed   string `json:"listed"`   // in the mode Offline: the address of a program outside that the proxy admits
	Unlisted string `json:"unlisted"` // in the mode Offline: the address of a program outside that the proxy refuses
}

// Check starts a process inside the sandbox and lets it try to break the rules. The parameter "self" is the command
// line of a program that reads a Task from its standard input and calls Try. Check removes the files of the attempts
// and the folders that it has created.
//
// The sandbox hides the sockets of other programs. If such a program removes its socket at the same time, the start
// fails. So Check tries up to three times.
func Check(spec Spec, self []string) (report Report) {
	for range 3 {
		if report = checkOnce(spec, self); len(report.Trials) > 0 {
			break
		}
	}
	return report
}

func checkOnce(spec Spec, self []string) Report {
	report := Report{Mode: spec.Mode, Trials: []Trial{}, Rules: []string{}}
	var listed, unlisted string
	if spec.Mode == Offline {
		for _, address := range []*string{&listed, &unlisted} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				report.Why = err.Error()
				return report
			}
			defer func() { _ = l.Close() }() // the attempt needs only a connection
			*address = l.Addr().String()
		}
		if h, err := proxy.ParseHost(listed); err == nil { // ParseHost accepts every address with a port
			spec.Hosts = append(slices.Clone(spec.Hosts), h)
		}
	}
	box, made, err := newSandbox(spec)
	defer func() {
		for _, dir := range slices.Backward(made) {
			_ = os.Remove(dir) // fails if the folder has files by now, and then the folder stays
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
		Process: os.Getpid(), Listed: listed, Unlisted: unlisted,
	}
	if box.Scoped {
		task.Abstract = "@" + name
		if l, err := net.Listen("unix", task.Abstract); err == nil {
			defer func() { _ = l.Close() }() // nothing was read
		}
	}
	for _, path := range []string{task.Hidden, task.Startup, task.Outside, task.Inside} {
		defer func() { _ = os.Remove(path) }() // most of these files do not exist
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

// try lets a process inside the sandbox make the attempts of a task.
func (b *Sandbox) try(self []string, task Task) (trials []Trial, err error) {
	told, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	argv := b.Command("/", self[0], self[1:]...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(told)
	network, err := b.Open(cmd, nil)
	if err != nil {
		return nil, err
	}
	defer network.Close()
	watch, err := b.Watch(cmd)
	if err != nil {
		return nil, err
	}
	var out []byte
	done := make(chan struct{})
	go func() { // Restrict changes the thread of this goroutine for good
		defer close(done)
		if err = b.Restrict(); err == nil {
			out, err = cmd.Output()
		}
	}()
	<-done
	watch.Entered()
	if err == nil {
		err = json.Unmarshal(out, &trials)
	}
	if err != nil {
		err = fmt.Errorf("the trial in the sandbox failed: %w", err)
	}
	return trials, err
}

const trialOutside = "folders outside of the project cannot be written"

// Try makes the attempts of a task. The caller is the process inside the sandbox.
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
		refused("abstract sockets are closed", dial("unix", t.Abstract))
	}
	if t.Mode != Protect {
		refused(trialOutside, create(t.Outside))
	}
	works := func(name string, err error) {
		refused(name, err)
		trials[len(trials)-1].OK = err == nil
	}
	if t.Mode == Offline {
		refused("programs outside cannot be reached without the proxy", dial("tcp", t.Unlisted))
		refused("no packet leaves", dial("udp", "192.0.2.1:53"))
		refused("the proxy refuses other hosts", throughProxy(t.Unlisted))
		works("the proxy connects to a listed host", throughProxy(t.Listed))
	}
	works("the project can be written", create(t.Inside))
	return trials
}

// dial connects to an address and closes the connection. With UDP, no packet leaves.
func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		err = c.Close()
	}
	return err
}

// throughProxy asks the proxy in HTTP_PROXY to connect to an address.
func throughProxy(address string) error {
	c, err := net.Dial("tcp", strings.TrimPrefix(os.Getenv("HTTP_PROXY"), "http://"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // only the answer matters
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", address); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		err = errors.New(strings.TrimSpace(answer))
	}
	return err
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
