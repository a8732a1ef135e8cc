package cli

// browserCommand shows a page in the browser of the desktop. No shell sees the address.
func browserCommand(page string) []string {
	return []string{"rundll32", "url.dll,FileProtocolHandler", page}
}
