package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only a dead one.
func (System) Look(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, os.ErrProcessDone
	}
	return look(pid, nil)
}

// look describes a process, with its line of the table. nil: it is asked for itself, which is cheaper than a table of all.
func look(pid int, line *windows.ProcessEntry32) (Process, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		err = os.ErrProcessDone
	}
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	if event, err := windows.WaitForSingleObject(h, 0); err == nil && event == windows.WAIT_OBJECT_0 {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, os.ErrProcessDone)
	}
	begun, err := begin(h)
	if err != nil {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	p := Process{
		Identity: Identity{PID: pid, Start: uint64(begun.Nanoseconds())}, Age: time.Since(time.Unix(0, begun.Nanoseconds())), CPU: Untold,
	}
	if line != nil {
		p.Program, p.Parent = windows.UTF16ToString(line.ExeFile[:]), int(line.ParentProcessID)
		return p, nil
	}
	p.Program = filepath.Base(image(h))
	var basic windows.PROCESS_BASIC_INFORMATION
	size := uint32(unsafe.Sizeof(basic))
	if windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&basic), size, nil) == nil {
		p.Parent = int(basic.InheritedFromUniqueProcessId)
	}
	return p, nil
}

// image is a process's file. "": it is not ours to know.
func image(process windows.Handle) string {
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name))
	if windows.QueryFullProcessImageName(process, 0, unsafe.SliceData(name), &size) != nil {
		return ""
	}
	return windows.UTF16ToString(name[:size])
}

func begin(process windows.Handle) (windows.Filetime, error) {
	var begun, ended, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &begun, &ended, &kernel, &user)
	return begun, err
}

// What a stop can do on this system. Programs without a console cannot receive a SIGTERM.
const (
	canAsk            = false
	orphansKeepParent = true // and another process gets its number one day
	goOn              = syscall.Signal(0)
)

// send terminates a process if it is still the same one.
func send(id Identity, _ syscall.Signal) error {
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id.PID))
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return &StopError{id.PID, os.ErrPermission}
	}
	if err != nil {
		return os.ErrProcessDone
	}
	defer windows.CloseHandle(h)
	if begun, err := begin(h); err != nil || uint64(begun.Nanoseconds()) != id.Start {
		return os.ErrProcessDone
	}
	_ = windows.TerminateProcess(h, 1) // the next look sees whether it has ended
	return nil
}

// snapshot has a line of each process, by its number.
func snapshot() map[int]windows.ProcessEntry32 {
	all := map[int]windows.ProcessEntry32{}
	handle, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return all
	}
	defer windows.CloseHandle(handle)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(handle, &entry); err == nil; err = windows.Process32Next(handle, &entry) {
		all[int(entry.ProcessID)] = entry
	}
	return all
}

// detached gives an orchestrator a console of its own without a window, which what it starts inherits, and a group of its own: no
// signal for us reaches it. (With DETACHED_PROCESS it had no console, and each program that it starts would open a window.)
var detached = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
