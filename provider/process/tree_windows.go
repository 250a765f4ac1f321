package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// treeIsComplete reports whether endRest finds all processes that an agent started.
const treeIsComplete = true

// tree is a job object. It ends all its processes when its last handle is closed, and so also when Perlica
// dies. Processes that the agent starts before it is assigned to the job are not in the job, because os/exec
// cannot start a suspended process.
type tree struct{ job windows.Handle }

func newTree(mark string) (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a job object: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return nil, fmt.Errorf("limit the job object: %w", err)
	}
	return &tree{job: job}, nil
}

func (t *tree) prepareCmd(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// prepareAttached leaves the agent on this process's console and in its process group.
func (t *tree) prepareAttached(*exec.Cmd) {}

func (t *tree) setLeader(p *os.Process) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return fmt.Errorf("open the agent's process: %w", err)
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(t.job, h); err != nil {
		return fmt.Errorf("assign the agent to its job: %w", err)
	}
	return nil
}

func (t *tree) enterSandbox()            {} // Windows has no sandbox
func (t *tree) rememberBelow(int)        {}
func (t *tree) rememberBelowQuickly(int) {}
func (t *tree) termGroup() error         { return t.killGroup() } // Windows cannot ask a process to end
func (t *tree) killGroup() error         { return windows.TerminateJobObject(t.job, 1) }
func (t *tree) closeTree() error         { return windows.CloseHandle(t.job) }

// endRest ends the remaining processes in the job. It gives no grace, because Windows has no polite request to
// end.
func (t *tree) endRest(time.Duration, <-chan struct{}) (ended, survived []Survivor) {
	t.killGroup()
	return nil, nil
}

// awaitExit blocks until a child has ended.
func awaitExit(pid int) {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	windows.WaitForSingleObject(h, windows.INFINITE)
}

func startTime(int) uint64 { return 0 }

func shellCode(st *os.ProcessState) int { return st.ExitCode() }

func signalName(*os.ProcessState) string { return "" }

func fromShell(code int) (int, string) { return code, "" }

// Survivors returns nothing, because a job object ends all its processes.
func Survivors() []Survivor { return nil }
