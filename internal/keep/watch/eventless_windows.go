package watch

import "golang.org/x/sys/windows"

// mostEntries is how many files and directories are watched by events; 0: as many as the kernel lets us.
const mostEntries = 0

// eventless reports whether dir's file system does not report all changes: servers may forget to, and some (WSL's among
// them) never do.
func eventless(dir string) bool {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return false
	}
	var volume [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumePathName(name, &volume[0], uint32(len(volume))); err != nil {
		return false
	}
	return windows.GetDriveType(&volume[0]) == windows.DRIVE_REMOTE
}
