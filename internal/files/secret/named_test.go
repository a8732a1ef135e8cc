package secret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{"GITHUB_TOKEN", "apiKey", "X-Api-Key", "--password", "-pwd", "AWS_SECRET_ACCESS_KEY", "client_secret", "bearer", "Authorization", "DB_PASS", "accessToken", "token", "Cookie", "OPENAI_API_KEY", "APIKEY"} {
		if !Named(name) {
			t.Errorf("%s is not a name of a secret", name)
		}
	}
	for _, name := range []string{"", "max_tokens", "TOKEN_FILE", "token-endpoint", "client_id", "PORT", "keyboard", "key", "PUBLIC_KEY", "compass", "password_file", "tokenizer", "--", "secret_name", "PATH", "sort-key", "passenger"} {
		if Named(name) {
			t.Errorf("%s is the name of a secret", name)
		}
	}
}

func TestWords(t *testing.T) {
	for want, argv := range map[string][]string{
		"server --token [redacted] --port 8080":              {"server", "--token", "abc", "--port", "8080"},
		"server --api-key=[redacted] /srv/data":              {"server", "--api-key=abc", "/srv/data"},
		"docker run -e GITHUB_TOKEN=[redacted] -e A=b":       {"docker", "run", "-e", "GITHUB_TOKEN=abc", "-e", "A=b"},
		"docker run -e GITHUB_TOKEN image":                   {"docker", "run", "-e", "GITHUB_TOKEN", "image"},
		"run --token --verbose --token-file /run/t":          {"run", "--token", "--verbose", "--token-file", "/run/t"},
		"curl -H Authorization: Bearer [redacted]":           {"curl", "-H", "Authorization: Bearer abc123def"},
		"x login {\"password\":[redacted],\"user\":\"ada\"}": {"x", `login {"password":"hunter2","user":"ada"}`},
		"x https://ada:[redacted]@example.org/":              {"x", "https://ada:pw@example.org/"},
		"x --token ${TOKEN} TOKEN=$TOKEN":                    {"x", "--token", "${TOKEN}", "TOKEN=$TOKEN"},
		"npx -y server-everything@1.2.3 stdio":               {"npx", "-y", "server-everything@1.2.3", "stdio"},
		"gh [redacted]":                                      {"gh", "ghp_" + strings.Repeat("a1", 15)},
	} {
		before := append([]string(nil), argv...)
		if got := Line(argv); got != want {
			t.Errorf("%q: %s, want %s", argv, got, want)
		}
		if diff := cmp.Diff(before, argv); diff != "" {
			t.Error(diff)
		}
	}
}

func TestKnown(t *testing.T) {
	var k Known
	k.Add("TOKEN", "abc def")
	k.Add("PORT", "8080")
	k.Add("token", "${env:TOKEN}")
	k.Add("token", "x")
	k.AddWords([]string{"x", "--password", "opensesame", "--port", "8080", "PGPASSWORD=other"})
	text := `["abc def", 8080, "opensesame", "--password", "${env:TOKEN}", other, x]`
	if got, want := k.Redact(text), `["[redacted]", 8080, "[redacted]", "--password", "${env:TOKEN}", [redacted], x]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
