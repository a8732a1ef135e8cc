package cli

// browserCommand is the command that opens a page in the desktop's browser.
func browserCommand(page string) []string { return []string{"open", page} }
