package child

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryInfo asks for a process's memory; golang.org/x/sys does not wrap it.
var memoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// memoryCounters is PROCESS_MEMORY_COUNTERS of the Windows headers.
type memoryCounters struct {
	size, pageFaults                                     uint32
	peakWorkingSet, workingSet                           uintptr
	peakPagedPool, pagedPool, peakNonPaged, nonPagedPool uintptr
	pagefile, peakPagefile                               uintptr
}

// TreeUsage reads the usage of process pid and its living descendants from a snapshot of all processes. It returns an
// error that wraps [os.ErrProcessDone] when there is no such process; descendants that cannot be opened are left out.
// CPU does not include descendants that have ended.
func TreeUsage(pid int) (Usage, error) {
	byParent, err := processesByParent()
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	var u Usage
	todo := []member{{pid: uint32(pid)}}
	for i := 0; i < len(todo); i++ {
		m := todo[i]
		born, err := u.add(m)
		if i == 0 && err != nil {
			return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
		}
		if err != nil {
			continue
		}
		for _, c := range byParent[m.pid] {
			todo = append(todo, member{pid: c, parentBorn: born})
		}
		delete(byParent, m.pid) // the idle process is its own parent
	}
	return u, nil
}

// member is a process of a tree. A parent's PID may be reused, by a process younger than the child.
type member struct {
	pid        uint32
	parentBorn int64 // ns
}

// processesByParent lists the numbers of all processes under their parents' numbers.
func processesByParent() (map[uint32][]uint32, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer windows.CloseHandle(snapshot)
	byParent := map[uint32][]uint32{}
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		byParent[entry.ParentProcessID] = append(byParent[entry.ParentProcessID], entry.ProcessID)
	}
	return byParent, nil
}

// add counts m in and returns when it was created, in ns.
func (u *Usage) add(m member) (born int64, err error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, m.pid)
	if err != nil {
		return 0, os.ErrProcessDone
	}
	defer windows.CloseHandle(h)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return 0, fmt.Errorf("times of process %d: %w", m.pid, err)
	}
	if created.Nanoseconds() < m.parentBorn || exited != (windows.Filetime{}) {
		return 0, os.ErrProcessDone
	}
	var mem memoryCounters
	mem.size = uint32(unsafe.Sizeof(mem))
	if ok, _, err := memoryInfo.Call(uintptr(h), uintptr(unsafe.Pointer(&mem)), uintptr(mem.size)); ok == 0 {
		return 0, fmt.Errorf("memory of process %d: %w", m.pid, err)
	}
	u.Processes++
	u.RSS += int64(mem.workingSet)
	u.CPU += duration(kernel) + duration(user)
	return created.Nanoseconds(), nil
}

// duration reads a time span in units of 100 ns; Filetime's own methods read a point in time.
func duration(f windows.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}

// Continue is not supported: no signal resumes a process.
func Continue(pid int) error {
	return fmt.Errorf("continue process group %d: %w", pid, errors.ErrUnsupported)
}
