//go:build unix

package agentrun

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

// Whatever an agent writes without a terminal is kept, whole and in its order, also when it writes more than one file may hold;
// and so is how it was started and how it ended.
func TestOutputIsKept(t *testing.T) {
	const lines = 1_500_000 // 11 MB: it is rotated once
	home := t.TempDir()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	path := LogPath(home, "shop")
	exit, err := Run(Options{
		Home: home, Agent: "shop", Command: []string{"sh", "-c", fmt.Sprintf("seq 1 %d; echo oh dear >&2; exit 3", lines)},
		Environ: os.Environ(), In: null, Out: null, Err: null, Keep: path,
	})
	if err != nil || exit.Code != 3 {
		t.Fatal(exit, err)
	}
	older := rotation.Older(path)
	if len(older) != 1 {
		t.Errorf("rotated: %v", older)
	}
	var kept []byte
	for _, file := range append(older, path) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, b...)
	}
	var want bytes.Buffer
	for n := range lines {
		fmt.Fprintln(&want, n+1)
	}
	head, rest, _ := strings.Cut(string(kept), "\n")
	body, tail, found := strings.Cut(rest, "oh dear\n")
	if !strings.HasPrefix(head, "[outlive] ") || !strings.Contains(head, " started: sh -c seq ") {
		t.Errorf("it begins with %q", head)
	}
	if body != want.String() || !found {
		t.Errorf("%d bytes are kept, %d were written", len(body), want.Len())
	}
	if !strings.HasSuffix(tail, " ended with exit status 3\n") {
		t.Errorf("it ends with %q", tail)
	}
}

// Why an agent could not be started is kept, too.
func TestAFailedStartIsKept(t *testing.T) {
	home := t.TempDir()
	path := LogPath(home, "shop")
	if _, err := Run(Options{Home: home, Agent: "shop", Command: []string{filepath.Join(home, "nothing")}, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Keep: path}); err == nil {
		t.Fatal("it was started")
	}
	kept, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(kept), "not started: ") || !strings.Contains(string(kept), "no such file") {
		t.Errorf("%q, %v", kept, err)
	}
}
