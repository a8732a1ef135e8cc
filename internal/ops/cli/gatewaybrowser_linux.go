package cli

import "os"

// browserCommand is the command that opens a page in the desktop's browser; nil without a desktop.
func browserCommand(page string) []string {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open", page}
}
