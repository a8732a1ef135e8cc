package fileerror

import (
	"strings"
	"testing"
)

func TestSuggest(t *testing.T) {
	known := []string{"command", "args", "env", "cwd", "max_restarts", "headers", "standby", "url"}
	habits := map[string]string{"cmd": "command", "environment": "env", "workingdirectory": "cwd", "token": "bearer"}
	for word, want := range map[string]string{
		"comand": "command", "Command": "command", "cmd": "command", "agrs": "args", "argumnets": "", "maxRestarts": "max_restarts",
		"max-restarts": "max_restarts", "enviroment": "env", "header": "headers", "workingDirectory": "cwd", "standbye": "standby",
		"token": "", "ur": "", "x": "", "": "", "completely": "", strings.Repeat("command", 20): "",
	} {
		if got := Suggest(word, known, habits); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Suggest("cmd", known, nil); got != "cwd" {
		t.Errorf("without habits, cmd is meant as %q", got)
	}
}

func TestDidYouMean(t *testing.T) {
	many := strings.Fields("one two three four five six seven eight nine ten eleven twelve thirteen")
	for _, tc := range []struct {
		word  string
		known []string
		want  string
	}{
		{"thre", many, `did you mean "three"?`},
		{"nothing", many, ""},
		{"nothing", many[:3], "want one, two or three"},
		{"nothing", many[:1], "want one"},
		{"nothing", nil, ""},
	} {
		if got := DidYouMean(tc.word, tc.known, nil); got != tc.want {
			t.Errorf("%q of %q: %q, want %q", tc.word, tc.known, got, tc.want)
		}
	}
}

func TestShortened(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "short": "short", "first\nsecond": "first…", strings.Repeat("ä", 60): strings.Repeat("ä", 60), strings.Repeat("ä", 61): strings.Repeat("ä", 60) + "…",
	} {
		if got := Shortened(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
