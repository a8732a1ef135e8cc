package child

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killedCode is the exit code a killed tree gets: that of a shell for signal 9, as on the other systems.
const killedCode = 128 + 9

// tree reaches a process and its descendants by a job object, nested in the one that holds outlive itself.
type tree struct {
	job  windows.Handle // 0: could not be made
	peak int64          // bytes, read before the job is closed

	killed bool // by us: the exit code says nothing of its own
}

var mechanism = Mechanism{Name: "job object", InUse: true, Detail: "the kernel ends everything with outlive"}

// confine puts outlive itself into a job that dies with it. Whatever is started afterwards is born inside, so nothing
// survives outlive, not even a process started before its own job was attached.
var confine = sync.OnceFunc(func() {
	job, err := newJob()
	if err != nil {
		return
	}
	// The handle is never closed: the kernel closes it when outlive is gone, however it went.
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		_ = windows.CloseHandle(job)
	}
})

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create job: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("limit job: %w", err)
	}
	return job, nil
}

func (t *tree) attributes(inherit bool) *syscall.SysProcAttr {
	confine()
	t.job, _ = newJob()
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

// waitExit holds a thread for the process.
func (t *tree) waitExit(proc *os.Process) {
	err := proc.WithHandle(func(h uintptr) {
		_, _ = windows.WaitForSingleObject(windows.Handle(h), windows.INFINITE)
	})
	if err != nil {
		_, _ = proc.Wait()
	}
}

// killRest ends what the leader left behind and waits until the job is empty.
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

// terminate sends CTRL_BREAK to the group; CTRL_C cannot be sent to a group other than ours. With Inherit the process
// is in our group and shares our console's signals already.
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
	return p.proc.Kill()
}

// status reads what the system told at the end.
func (p *Process) status(state *os.ProcessState, err error) Status {
	s := Status{Code: 255, MaxRSS: p.tree.peak}
	if err == nil {
		s.Code = state.ExitCode()
		s.CPU = state.UserTime() + state.SystemTime()
	}
	if p.tree.killed {
		s.Code, s.Signalled, s.Signal = killedCode, true, "killed"
	}
	return s
}

// unread: a pipe tells its fill level only at the reading end here.
func unread(*os.File) (int, bool) { return 0, false }

func pipe(string) (r, w *os.File, err error) { return os.Pipe() }

// CloseInheritedOnExec does nothing: handles are passed to children by an explicit list here.
func CloseInheritedOnExec() {}
