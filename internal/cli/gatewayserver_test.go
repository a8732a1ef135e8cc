package cli

import "testing"

// What logs and status show of a URL has no key in it.
func TestShownURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://mcp.example/mcp":                   "https://mcp.example/mcp",
		"https://mcp.example/mcp?api_key=s3cret#x":  "https://mcp.example/mcp",
		"https://user:s3cret@mcp.example:8443/a?b=": "https://user:xxxxx@mcp.example:8443/a",
		"https://%zz/": "the configured URL",
	} {
		if got := shownURL(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}
