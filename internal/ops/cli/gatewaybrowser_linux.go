package cli

// browserCommand shows a page in the browser of the desktop.
func browserCommand(page string) []string { return []string{"xdg-open", page} }
