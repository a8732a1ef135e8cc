package hooks

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

func look(pid int) (l procInfo, ok bool) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return l, false
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if int(entry.ProcessID) == pid {
			l = procInfo{pid: pid, name: windows.UTF16ToString(entry.ExeFile[:]), parent: int(entry.ParentProcessID)}
			l.start = startOf(pid)
			return l, true
		}
	}
	return l, false
}

// startOf returns a process's start in 100 ns since 1601. 0: access is denied, or it has ended.
func startOf(pid int) uint64 {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h)
	var start, exit, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &start, &exit, &kernel, &user) != nil {
		return 0
	}
	return uint64(start.HighDateTime)<<32 | uint64(start.LowDateTime)
}
