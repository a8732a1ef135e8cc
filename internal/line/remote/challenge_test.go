package remote

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestChallenge(t *testing.T) {
	for _, tc := range []struct {
		headers []string
		want    challenge
	}{
		{nil, challenge{}},
		{[]string{`Basic realm="x"`}, challenge{}},
		{[]string{`Bearer`}, challenge{}},
		{[]string{`bearer scope="a b"`}, challenge{scopes: []string{"a", "b"}}},
		{[]string{`Bearer resource_metadata="https://x/y", error=insufficient_scope , scope="a"`}, challenge{metadata: "https://x/y", problem: "insufficient_scope", scopes: []string{"a"}}},
		{[]string{`Basic realm="a, Bearer scope=\"no\"", Bearer scope="yes"`}, challenge{scopes: []string{"yes"}}},
		{[]string{`Negotiate abc==, Bearer scope=yes`}, challenge{scopes: []string{"yes"}}},
		{[]string{`Basic x="y"`, `BEARER Scope = "a"`}, challenge{scopes: []string{"a"}}},
		{[]string{`Bearer scope="never ends`}, challenge{scopes: []string{"never", "ends"}}},
		{[]string{`"`, `=`, `Bearer scope="a"`}, challenge{scopes: []string{"a"}}},
		{[]string{`Bearer scope="a \"b\\"`, `Bearer scope="c"`}, challenge{scopes: []string{"a", `"b\`}}},
		{[]string{`realm=x, Bearer realm = "y", scope = "a"`}, challenge{scopes: []string{"a"}}},
		{[]string{strings.Repeat(" ", maxChallenge-6) + `Bearer scope="a"`}, challenge{}},
	} {
		got := challengeOf(&http.Response{Header: http.Header{"Www-Authenticate": tc.headers}})
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(challenge{}), cmp.Transformer("empty", func(s []string) int { return len(s) })); diff != "" {
			t.Errorf("%q: %s", tc.headers, diff)
		}
	}
}

// Whatever a server puts there is read to its end, and what was taken for a value stood there.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{`Bearer a=b, c="d\"e"`, `A, B c=d,, E`, `Negotiate abc==`, `"`, `a = "`, "\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, h string) {
		size := 0
		for scheme, params := range challenges(h) {
			size += len(scheme)
			if scheme == "" {
				t.Errorf("%q: a challenge without a scheme", h)
			}
			for key, value := range params {
				if utf8.ValidString(h) { // lower case may be longer than what is broken
					size += len(value)
				}
				_ = key
			}
		}
		if size > len(h) {
			t.Errorf("%q: more was read than stands there", h)
		}
	})
}
