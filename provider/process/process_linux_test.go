package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// proc-parent starts a grandchild, prints its number and then echoes its input. The grandchild holds
	// stderr open, ignores SIGTERM and lives for an hour.
	testChildren["proc-parent"] = func(args []string) {
		cmd := procGrandchild(args)
		fmt.Println(cmd.Process.Pid)
		io.Copy(os.Stdout, os.Stdin)
		if slices.Contains(args, "deaf") {
			time.Sleep(time.Hour)
		}
	}
	testChildren["proc-polite"] = func([]string) { // exits on SIGTERM
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	// proc-middle is a Perlica that is going to be killed. It runs an agent that ignores all signals, and
	// prints the numbers of the agent and its grandchild.
	testChildren["proc-middle"] = func([]string) {
		p, err := Start(procSpec("proc-agent"))
		if err != nil {
			panic(err)
		}
		io.Copy(os.Stdout, p.stdout)
	}
	testChildren["proc-agent"] = func([]string) {
		signal.Ignore(syscall.SIGTERM)
		cmd := procGrandchild([]string{"setsid"})
		fmt.Printf("%d\n%d\n", os.Getpid(), cmd.Process.Pid)
		time.Sleep(time.Hour)
	}
}

// procGrandchild starts a grandchild. The arguments choose its own session (setsid), no mark (clean) and an
// exit on SIGTERM (polite).
func procGrandchild(args []string) *exec.Cmd {
	child := "proc-stubborn"
	cmd := exec.Command(procSelf())
	cmd.Env = os.Environ()
	for _, arg := range args {
		switch arg {
		case "setsid":
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		case "clean":
			cmd.Env = nil
		case "polite":
			child = "proc-polite"
		}
	}
	cmd.Env = append(cmd.Env, testChild+"="+child)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		panic(err)
	}
	return cmd
}

// procWatch opens a process, so that a test can wait for its end.
func procWatch(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return fd
}

// procDead reports whether the process ends within ms milliseconds.
func procDead(fd, ms int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
		if err != unix.EINTR {
			return n == 1
		}
	}
}

func TestProcessLeavesNoGrandchild(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		rest bool // the grandchild outlives the agent and End finds it
	}{
		{"in the group", []string{"group"}, true},
		{"polite in the group", []string{"group", "polite"}, true},
		{"in the group without the mark", []string{"group", "clean"}, true},
		{"daemon", []string{"setsid"}, true},
		{"polite daemon", []string{"setsid", "polite"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := procSpec("proc-parent", tt.args...)
			p, r := procStart(t, spec)
			p.grace = time.Minute // for the agent; the grandchild gets less below
			line := procLine(t, r)
			fd := procWatch(t, line)
			procEcho(t, p, r)
			p.Stdin().Close()
			<-p.Exited()
			if procDead(fd, 0) {
				t.Fatal("the grandchild went with the agent: this tests nothing")
			}
			p.grace = 100 * time.Millisecond
			procEnd(t, p)
			if !procDead(fd, 0) {
				t.Fatal("the grandchild lives on")
			}
			pid, _ := strconv.Atoi(line)
			if s, ok := readStat(pid); ok && s.ppid == os.Getpid() {
				t.Errorf("the grandchild was not reaped: %+v", s)
			}
			if rest := p.Forced().Rest; len(rest) != 1 || rest[0].PID != pid || rest[0].Agent != "proc-parent" {
				t.Errorf("forced: %+v", p.Forced())
			}
		})
	}
}

func TestProcessEndFindsDaemonWithoutMark(t *testing.T) {
	spec := procSpec("proc-parent", "setsid", "clean", "deaf")
	p, r := procStart(t, spec)
	fd := procWatch(t, procLine(t, r))
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no grace: the agent gets a signal while the daemon is below it
	if err := p.End(ctx); err != nil {
		t.Fatal(err)
	}
	if !procDead(fd, 0) {
		t.Fatal("the daemon lives on")
	}
}

// TestProcessOrderlyEndFindsDaemonWithoutMark checks that End ends a program with its own session and a cleared
// environment. The agent is a script that started this program. The script exits when its input ends.
func TestProcessOrderlyEndFindsDaemonWithoutMark(t *testing.T) {
	spec := procSpec("proc-parent")
	spec.Argv = []string{"sh", "-c", `"$0" "$@"; exit $?`, spec.Argv[0], "setsid", "clean"}
	p, r := procStart(t, spec)
	p.grace = time.Minute // long enough that a loaded machine does not force the script to end
	line := procLine(t, r)
	fd := procWatch(t, line)
	procEcho(t, p, r)
	ended := make(chan error, 1)
	go func() { ended <- p.End(context.Background()) }()
	<-p.Exited() // the script exits at the end of its input
	p.endGrace() // the daemon ignores SIGTERM
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if f := p.Forced(); f.Term || f.Kill || len(f.Rest) != 1 || strconv.Itoa(f.Rest[0].PID) != line {
		t.Errorf("forced: %+v", f)
	}
	if !procDead(fd, 0) {
		t.Fatal("the daemon lives on")
	}
}

func TestProcessKillAndEndLeaveNoDaemon(t *testing.T) {
	p, r := procStart(t, procSpec("proc-parent", "setsid"))
	fd := procWatch(t, procLine(t, r))
	p.Kill()
	procEnd(t, p)
	if !procDead(fd, 0) {
		t.Fatal("the daemon lives on")
	}
}

func TestProcessExitIsSeenWhileGrandchildHoldsStderr(t *testing.T) {
	p, r := procStart(t, procSpec("proc-parent", "group"))
	procWatch(t, procLine(t, r))
	p.Stdin().Close()
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Fatal("the exit of the agent went unnoticed")
	}
}

func TestProcessEndLeavesOtherAgentsAlone(t *testing.T) {
	a, ra := procStart(t, procSpec("proc-parent", "setsid"))
	b, rb := procStart(t, procSpec("proc-parent", "setsid"))
	fa, fb := procWatch(t, procLine(t, ra)), procWatch(t, procLine(t, rb))
	// End must neither kill nor reap another child of this process.
	other := exec.Command(procSelf())
	other.Env = append(procEnv(), testChild+"=proc-exit")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	awaitExit(other.Process.Pid)

	a.Kill()
	procEnd(t, a)
	if !procDead(fa, 0) {
		t.Fatal("the daemon of the ended agent lives on")
	}
	procEcho(t, b, rb)
	if procDead(fb, 0) {
		t.Fatal("the daemon of the other agent was ended")
	}
	other.Wait()
	if code := other.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("somebody else's child: %v", other.ProcessState)
	}
	b.Kill()
	procEnd(t, b)
	if !procDead(fb, 0) {
		t.Fatal("the daemon of the second agent lives on")
	}
}

func TestProcessDiesWithPerlica(t *testing.T) {
	if _, err := adopt(); err != nil { // so that the remaining processes are below this test
		t.Fatal(err)
	}
	middle := exec.Command(procSelf())
	middle.Env = append(procEnv(), testChild+"=proc-middle")
	out, err := middle.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := middle.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	agent := procWatch(t, procLine(t, r))
	line := procLine(t, r)
	daemon := procWatch(t, line)
	pid, _ := strconv.Atoi(line)
	if s := procSurvivor(pid); s != nil {
		t.Errorf("listed while its Perlica lives: %+v", s)
	}
	middle.Process.Kill()
	middle.Wait()
	if !procDead(agent, 60_000) {
		t.Fatal("the agent outlived a killed Perlica")
	}
	if procDead(daemon, 0) {
		t.Fatal("the daemon died too: the rest tests nothing")
	}
	s := procSurvivor(pid)
	if s == nil || s.Agent != "proc-agent" || s.Command == "" {
		t.Errorf("survivor: %+v", s)
	}
	if procDead(daemon, 0) {
		t.Error("Survivors ended what it listed")
	}
}

func procSurvivor(pid int) *Survivor {
	for _, s := range Survivors() {
		if s.PID == pid {
			return &s
		}
	}
	return nil
}

func TestProcessOutlivesTheThreadThatStartedIt(t *testing.T) {
	var p *Process
	var err error
	tid := make(chan int)
	var start func()
	start = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			done := make(chan int) // block the main thread, because it never ends, and use another
			go func() { start(); close(done) }()
			<-done
			return
		}
		p, err = Start(procSpec("proc-echo"))
		tid <- unix.Gettid()
	}
	go start()
	task := fmt.Sprintf("/proc/self/task/%d", <-tid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if _, err := os.Stat(task); os.IsNotExist(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the thread did not end")
		}
	}
	defer p.stdout.Close()
	procEcho(t, p, bufio.NewReader(p.stdout))
	procEnd(t, p)
}

func TestProcessReadsItsOwnStat(t *testing.T) {
	s, ok := readStat(os.Getpid())
	if !ok || s.ppid != os.Getppid() || s.pgid != unix.Getpgrp() || s.start == 0 || s.state == 'Z' {
		t.Fatalf("%+v %v", s, ok)
	}
}

// TestProcessHasNoTerminal checks that an agent has its own session, so that its processes cannot use the person's
// terminal.
func TestProcessHasNoTerminal(t *testing.T) {
	p, r := procStart(t, procSpec("proc-echo"))
	procEcho(t, p, r)
	if sid, err := unix.Getsid(p.Pid()); err != nil || sid != p.Pid() {
		t.Errorf("process %d is in session %d: %v", p.Pid(), sid, err)
	}
	procEnd(t, p)
}
