package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killTime is how long a terminated process has to go.
const killTime = 2 * time.Second

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only a dead one.
func (System) Look(pid int) (Process, error) {
	if pid <= 0 {
		return Process{}, os.ErrProcessDone
	}
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
	id := Identity{PID: pid, Start: uint64(begun.Nanoseconds())}
	return Process{Identity: id, Age: time.Since(time.Unix(0, begun.Nanoseconds()))}, nil
}

func begin(process windows.Handle) (windows.Filetime, error) {
	var begun, ended, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &begun, &ended, &kernel, &user)
	return begun, err
}

// Stop ends everything of a target: terminate, wait, kill. It returns nil only when it has seen that nothing is left,
// otherwise a [StopError]. Programs without a console cannot receive a SIGTERM here.
func (s System) Stop(ctx context.Context, t Target) error {
	for end := time.Now().Add(killTime); ; {
		left := members(s.All(), t.Leaders)
		if len(left) == 0 {
			return nil
		}
		t.Leaders = left // one that has ended leads no more to what it has started
		if time.Now().After(end) {
			return &StopError{left[0].PID, errStuck}
		}
		for _, id := range left {
			if err := terminate(id); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func terminate(id Identity) error {
	if id.PID == os.Getpid() || id.PID == os.Getppid() {
		return &StopError{id.PID, errOurselves}
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id.PID))
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return &StopError{id.PID, os.ErrPermission}
	}
	if err != nil {
		return nil // it has ended, which the next look will see
	}
	defer windows.CloseHandle(h)
	if begun, err := begin(h); err != nil || uint64(begun.Nanoseconds()) != id.Start {
		return nil // its number is another one's by now
	}
	_ = windows.TerminateProcess(h, 1)
	return nil
}

// members are the leaders, if they are still the same processes, and their descendants.
func members(all []Entry, leaders []Identity) []Identity {
	chosen, table := map[Identity]bool{}, TableOf(all)
	var found []Identity
	for _, l := range leaders {
		tree := table.Tree(l.PID)
		if len(tree) == 0 || tree[0].Identity != l {
			continue
		}
		for _, e := range tree {
			if !chosen[e.Identity] {
				chosen[e.Identity] = true
				found = append(found, e.Identity)
			}
		}
	}
	return found
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

// FindsStarts says that a start that could not be recorded is not found again.
const FindsStarts = false
