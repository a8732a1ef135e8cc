package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a command line says of a server is what a file would have said of it.
func TestCommandLineIsAFile(t *testing.T) {
	opts := Options{Lookup: func(name string) (string, bool) { return "value of " + name, name != "UNSET" }}
	for _, tc := range []struct {
		name  string
		given Given
		file  string
	}{
		{"url", Given{URL: "https://x.example/mcp?k=${KEY}"}, `{url: "https://x.example/mcp?k=${env:KEY}"}`},
		{"headers", Given{URL: "https://x.example", Headers: []string{"X-A:  b: c ", "X-B:${env:B}"}}, `{url: "https://x.example", headers: {X-A: "b: c", X-B: "value of B"}}`},
		{"oauth", Given{URL: "https://x.example", ClientID: "me", ClientSecret: "${SECRET}", Issuer: "https://id.example", Resource: "https://r.example",
			Scopes: []string{"a", "b"}, CallbackPort: 3334},
			`{url: "https://x.example", auth: {oauth: {client_id: me, client_secret: value of SECRET, issuer: "https://id.example", resource: "https://r.example", scopes: [a, b], callback_port: 3334}}}`},
		{"command", Given{Command: []string{"sh", "-c", "echo ${HOME} $$", ""}}, `{command: sh, args: [-c, "echo $${HOME} $$", ""]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.given.Name = "one"
			got, err := OfCommandLine(tc.given, opts)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Parse("outlive.yaml", []byte("names: never\nservers: {one: "+tc.file+"}"), opts)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.Servers[0], got.Servers[0], cmp.FilterPath(func(p cmp.Path) bool {
				return strings.HasSuffix(p.String(), "Pos")
			}, cmp.Ignore())); d != "" {
				t.Errorf("(-file +command line):\n%s", d)
			}
			if got.Names != want.Names || got.Format != want.Format {
				t.Errorf("names %s, format %v", got.Names, got.Format)
			}
		})
	}
	if _, err := OfCommandLine(Given{Name: "one", URL: "https://x.example", Headers: []string{"X-A: ${UNSET}", "X A: b"}}, opts); err == nil ||
		!strings.Contains(err.Error(), "the command line: the environment variable UNSET is not set") || !strings.Contains(err.Error(), `"X A" is not a header name`) {
		t.Errorf("mistakes: %v", err)
	}
}
