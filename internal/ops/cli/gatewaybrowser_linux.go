package cli

import "os"

// browserCommand shows a page in the browser of the desktop; nil without a desktop.
func browserCommand(page string) []string {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	return []string{"xdg-open", page}
}
