package notify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

func TestRedact(t *testing.T) {
	long := strings.Repeat("aB3", 12)
	for name, tc := range map[string]struct{ text, want string }{
		"OpenAI":            {"key sk-proj-" + long + " used", "key [redacted] used"},
		"Anthropic":         {"sk-ant-api03-" + long, "[redacted]"},
		"GitHub":            {"https://x:ghp_" + long + "@github.com/a", "https://x:[redacted]@github.com/a"},
		"GitHub new":        {"github_pat_" + long, "[redacted]"},
		"Slack":             {"xoxb-1234-5678-abcd", "[redacted]"},
		"AWS":               {"id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."},
		"AWS secret":        {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY x", "AWS_SECRET_ACCESS_KEY=[redacted] x"},
		"Google":            {"AIza" + long, "[redacted]"},
		"JWT":               {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_", "[redacted]"},
		"Telegram":          {"https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe", "https://api.telegram.org/bot[redacted]/getMe"},
		"bearer":            {"Authorization: Bearer abc.def123", "Authorization: Bearer [redacted]"},
		"basic":             {`"Authorization": "Basic dXNlcjpwYXNz"`, `"Authorization": "Basic [redacted]"`},
		"password":          {"password=hunter2&x=1", "password=[redacted]&x=1"},
		"password in JSON":  {`{"db_password": "a \"b\" c", "x": 1}`, `{"db_password": [redacted], "x": 1}`},
		"a number":          {"PGPASSWORD=123456 psql", "PGPASSWORD=[redacted] psql"},
		"flag":              {"mysql --password s3cret -h db", "mysql --password [redacted] -h db"},
		"token":             {"NPM_TOKEN='1a2b3c4d5e'", "NPM_TOKEN=[redacted]"},
		"base64":            {"MY_KEY: " + long + "==", "MY_KEY: [redacted]"},
		"private key":       {"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nxyz\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		"half a key":        {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "[redacted]"},
		"two":               {"pwd: a, pwd: b", "pwd: [redacted], pwd: [redacted]"},
		"words stay":        {"Unexpected token: expired. max_tokens=4096, task-key: none; bearer authentication; desk-top-computer-is-here-now1", "Unexpected token: expired. max_tokens=4096, task-key: none; bearer authentication; desk-top-computer-is-here-now1"},
		"what happened":     {"Error: 429 Too Many Requests at 02:14:07 in /srv/app/main.go:42 (sha 3f2a9c1d)", "Error: 429 Too Many Requests at 02:14:07 in /srv/app/main.go:42 (sha 3f2a9c1d)"},
		"nothing to assign": {"password:", "password:"},
		"a boolean":         {`{"id": "tok", "password": true}`, `{"id": "tok", "password": true}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Redact(tc.text); got != tc.want {
				t.Errorf("%q became %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

// What is bold stays so, whatever is hidden before it, behind it or within it.
func TestRedactKeepsWhatIsBold(t *testing.T) {
	var text Text
	text.Write("password=hunter2 ")
	text.WriteBold("Details:")
	text.Write(" pwd=")
	text.WriteBold("abc")
	text.WriteBold("def ")
	text.WriteBold("end")
	got := text.redacted()
	var bold []string
	for _, b := range got.Bold {
		bold = append(bold, got.Body[b.Start:b.End])
	}
	if d := cmp.Diff([]string{"Details:", secret.Hidden, " ", "end"}, bold); d != "" {
		t.Errorf("%q: %s", got.Body, d)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("password=hunter2", 0, 4)
	f.Add("sk-ant-api03-aB3aB3aB3aB3aB3aB3 Bearer x1y2z3 token=\"a1b2c3d4\"", 3, 30)
	f.Add("pwd=pwd=pwd=a://b:c@d -----BEGIN PRIVATE KEY-----", 1, 2)
	f.Add("[redacted]pwd=[redacted]x", 0, 1)
	f.Fuzz(func(t *testing.T, s string, start, length int) {
		text := Text{Body: s}
		if start >= 0 && length > 0 && start < len(s) && length <= len(s)-start {
			text.Bold = []Span{{start, start + length}}
		}
		once := text.redacted()
		if len(once.Body) > 11*len(s) {
			t.Fatalf("%d bytes became %d", len(s), len(once.Body))
		}
		if again := Redact(once.Body); again != once.Body {
			t.Fatalf("%q became %q, and that %q", s, once.Body, again)
		}
		for _, b := range once.Bold {
			if b.Start < 0 || b.Start >= b.End || b.End > len(once.Body) {
				t.Fatalf("bold %v of %d bytes", b, len(once.Body))
			}
		}
	})
}
