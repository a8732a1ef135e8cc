package notify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// page is what the test binary does as the program of a channel.
func page(how string) int {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch how {
	case "write":
		if os.WriteFile(os.Args[1], []byte(line), 0o600) != nil {
			return 1
		}
	case "hang":
		time.Sleep(time.Hour)
	case "leave": // something running that holds our streams, and tells when it is ended
		child := exec.Command(os.Args[0])
		child.Env, child.Stderr = []string{pageAs + "=hang"}, os.Stderr
		if child.Start() != nil {
			return 1
		}
		fmt.Fprintln(os.Stderr, "left", child.Process.Pid)
		time.Sleep(time.Hour)
	case "65", "75":
		fmt.Fprintln(os.Stderr, "no: password=hunter2")
		code := 75
		if how == "65" {
			code = 65
		}
		return code
	}
	return 0
}

const pageAs = "OUTLIVE_TEST_PAGE"

func pager(t *testing.T, how string, args ...string) *Exec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewExec(append([]string{self}, args...), []string{pageAs + "=" + how})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExecGetsTheMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	m := Message{
		Key: "incident/1/2", Thread: "incident/1", Follows: true, Text: Text{Body: "recovered\n<é>", Bold: []Span{{0, 9}}},
		Buttons: [][]Button{{{Label: "Ack", Callback: Callback{"inc00001", "ack", "aaaaaa"}}}},
	}
	if _, err := pager(t, "write", path).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Note
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := Note{
		Version: 1, Key: "incident/1/2", Thread: "incident/1", Update: true, Text: "recovered\n<é>",
		Buttons: []NoteButton{{"Ack", "v1:inc00001:ack:aaaaaa"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestExecFailures(t *testing.T) {
	slow := pager(t, "hang")
	slow.timeout = 200 * time.Millisecond
	missing := pager(t, "write")
	missing.command[0] = filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		x    *Exec
		want SendError
		says string
	}{
		"later":   {pager(t, "75"), SendError{Failure: Unreachable}, "exit status 75: no: password=[redacted]"},
		"never":   {pager(t, "65"), SendError{Failure: Rejected}, "exit status 65"},
		"hangs":   {slow, SendError{Failure: Unreachable, Unsure: true}, ""},
		"missing": {missing, SendError{Failure: Refused}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.x.Send(t.Context(), text("x"))
			var got *SendError
			if !errors.As(err, &got) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v", err)
			}
			if d := cmp.Diff(tc.want, SendError{Failure: got.Failure, Unsure: got.Unsure}); d != "" {
				t.Error(d)
			}
		})
	}
	if _, err := NewExec(nil, nil); err == nil {
		t.Error("no command is not an error")
	}
}
