package cli

// browserCommand is the command that opens a page in the desktop's browser. The address is not passed through a
// shell.
func browserCommand(page string) []string {
	return []string{"rundll32", "url.dll,FileProtocolHandler", page}
}
