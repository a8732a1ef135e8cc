package child

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killedCode is the exit code of a killed tree: that of a shell for signal 9, as on the other systems.
const killedCode = 128 + 9

// tree is a job object with the process and its descendants, nested in outlive's own job.
type tree struct {
	job  windows.Handle // 0: could not be made
	peak int64          // bytes, read before the job is closed

	killed bool // by us, if it has killedCode: it may have exited just before
}

// Supports says why a kill mode is not possible on this system.
func Supports(mode KillMode) error {
	if mode == KillGroup {
		return fmt.Errorf("%q is not possible on Windows, where everything a server has started ends with it: leave it out", mode)
	}
	return nil
}

var mechanism = Mechanism{Name: "job object", InUse: true, Detail: "the kernel ends everything with outlive"}

// confine puts outlive into a job that ends with it. Later processes are created in it, so that none survives outlive,
// even before its own job was attached.
var confine = sync.OnceFunc(func() {
	// A server cannot leave: its own job does not allow it. What we start ourselves can, such as a browser.
	job, err := newJob(windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK)
	if err != nil {
		return
	}
	// The handle is never closed: the kernel closes it when outlive ends.
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		_ = windows.CloseHandle(job)
	}
})

func newJob(more uint32) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create job: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | more
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("limit job: %w", err)
	}
	return job, nil
}

func (t *tree) attributes(inherit bool) *syscall.SysProcAttr {
	confine()
	t.job, _ = newJob(0)
	if inherit {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// adopt puts the new process into its own job. What it started in the microseconds before is in outlive's job.
func (t *tree) adopt(proc *os.Process) {
	if t.job == 0 {
		return
	}
	err := proc.WithHandle(func(h uintptr) {
		if windows.AssignProcessToJobObject(t.job, windows.Handle(h)) != nil {
			_ = windows.CloseHandle(t.job)
			t.job = 0
		}
	})
	if err != nil {
		t.close()
	}
}

// close also kills what is left in the job.
func (t *tree) close() {
	if t.job != 0 {
		_ = windows.CloseHandle(t.job)
		t.job = 0
	}
}

// waitExit occupies a thread for the process.
func (t *tree) waitExit(proc *os.Process) {
	err := proc.WithHandle(func(h uintptr) {
		_, _ = windows.WaitForSingleObject(windows.Handle(h), windows.INFINITE)
	})
	if err != nil {
		_, _ = proc.Wait()
	}
}

// killRest kills the rest of the job and waits until it is empty.
func (t *tree) killRest(int) {
	if t.job == 0 {
		return
	}
	t.peak = t.peakMemory()
	_ = windows.TerminateJobObject(t.job, killedCode)
	for end := time.Now().Add(200 * time.Millisecond); t.active() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (t *tree) peakMemory() int64 {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if windows.QueryInformationJobObject(t.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return int64(info.PeakProcessMemoryUsed)
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of the Windows headers.
type jobAccounting struct {
	userTime, kernelTime, periodUserTime, periodKernelTime  int64
	pageFaults, processes, activeProcesses, terminatedByJob uint32
}

func (t *tree) active() uint32 {
	var info jobAccounting
	if windows.QueryInformationJobObject(t.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return info.activeProcesses
}

// terminate sends CTRL_BREAK to the group; CTRL_C works only for our own group. With Inherit the process is in our group
// and gets our console's signals anyway.
func (p *Process) terminate() error {
	if p.inherit {
		return p.kill()
	}
	if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.pid)); err != nil {
		return fmt.Errorf("send ctrl-break to %d: %w", p.pid, err)
	}
	return nil
}

func (p *Process) kill() error {
	p.tree.killed = true
	if p.tree.job != 0 {
		if err := windows.TerminateJobObject(p.tree.job, killedCode); err == nil {
			return nil
		}
	}
	var failed error
	err := p.proc.WithHandle(func(h uintptr) { failed = windows.TerminateProcess(windows.Handle(h), killedCode) })
	return errors.Join(err, failed)
}

// status translates the result of the wait.
func (p *Process) status(state *os.ProcessState, err error) Status {
	s := Status{Code: 255, MaxRSS: p.tree.peak}
	if err == nil {
		s.Code = state.ExitCode()
		s.CPU = state.UserTime() + state.SystemTime()
	}
	if p.tree.killed && (err != nil || s.Code == killedCode) {
		s.Code, s.Signalled, s.Signal = killedCode, true, "killed"
	}
	return s
}

func pipe(string) (r, w *os.File, err error) { return os.Pipe() }

// CloseInheritedOnExec does nothing: handles are passed to children by an explicit list.
func CloseInheritedOnExec() {}
