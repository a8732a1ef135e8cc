package watch

import "golang.org/x/sys/windows"

// watchBudget is how many files and directories may be watched by events; 0: no limit of our own.
const watchBudget = 0

// eventless returns a name for dir's file system if it does not report all changes, otherwise "". Servers may forget to
// report, and some (WSL's among them) never do.
func eventless(dir string) string {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return ""
	}
	var volume [windows.MAX_PATH + 1]uint16
	if err := windows.GetVolumePathName(name, &volume[0], uint32(len(volume))); err != nil {
		return ""
	}
	if windows.GetDriveType(&volume[0]) == windows.DRIVE_REMOTE {
		return "network drive"
	}
	return ""
}
