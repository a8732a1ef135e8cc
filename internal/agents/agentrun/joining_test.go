package agentrun

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// terminalOfSize is a terminal without a socket. What is typed is given to write.
func terminalOfSize(t *testing.T, rows, cols int, write func([]byte) error) *shared {
	t.Helper()
	sh := share(newSeen(Report{}), nil, true, window{Rows: rows, Cols: cols}, func(int, int) {}, write)
	t.Cleanup(func() { sh.close(Exit{}) })
	return sh
}

// sends lets a client join that is sent what there is for it, after before was called; it reads from the connection.
func (sh *shared) sends(t *testing.T, before func()) (client net.Conn) {
	t.Helper()
	ours, client := net.Pipe()
	j := &joiner{conn: ours, wake: make(chan struct{}, 1)}
	if why := sh.join(j); why != "" {
		t.Fatal(why)
	}
	before()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		sh.send(j)
	}()
	t.Cleanup(func() {
		sh.leave(j)
		<-sent
	})
	if kind, _, err := readFrame(client); kind != welcomeFrame || err != nil {
		t.Fatalf("the first frame is %q, %v", kind, err)
	}
	return client
}

func taken([]byte) error { return nil }

// A screen may be longer than a frame.
func TestAScreenOfManyColoursIsSent(t *testing.T) {
	t.Parallel()
	sh := terminalOfSize(t, mostRows, mostCols, taken)
	var output strings.Builder
	for i := range mostRows*mostCols - 1 {
		fmt.Fprintf(&output, "\x1b[38;2;%d;%d;200;48;2;200;200;200mx", i/64%62, i%64)
	}
	sh.output([]byte(output.String()), time.Unix(1_800_000_000, 0))
	want := 0
	client := sh.sends(t, func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		want = len(sh.whole(window{}))
	})
	if want <= frameLimit {
		t.Fatalf("%d bytes are no more than a frame", want)
	}
	got := 0
	for got < want {
		kind, content, err := readFrame(client)
		if kind != outputFrame || err != nil {
			t.Fatalf("after %d of %d bytes: %q, %v", got, want, kind, err)
		}
		got += len(content)
	}
	if got != want {
		t.Errorf("%d bytes instead of %d", got, want)
	}
}

// Whoever joins while more is written than is kept for a client is welcomed all the same.
func TestWelcomeBesideMuchOutput(t *testing.T) {
	t.Parallel()
	sh := terminalOfSize(t, 24, 80, taken)
	client := sh.sends(t, func() {
		sh.output(bytes.Repeat([]byte("x"), backlog+1), time.Unix(1_800_000_000, 0))
	})
	if kind, content, err := readFrame(client); kind != outputFrame || err != nil || len(content) > backlog {
		t.Errorf("%d bytes of %q, %v", len(content), kind, err)
	}
}

// An agent that reads nothing does not keep those who type to it from leaving.
func TestAnAgentThatReadsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := make(chan struct{})
		sh := terminalOfSize(t, 24, 80, func([]byte) error {
			<-reads
			return nil
		})
		ours, client := net.Pipe()
		left := make(chan struct{})
		go func() {
			defer close(left)
			sh.listen(&joiner{conn: ours})
		}()
		for range 2 * keysKept {
			if err := sendFrame(client, inputFrame, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		<-left
		close(reads)
	})
}

// An agent that is busy for some seconds gets all of a long text that somebody pastes meanwhile.
func TestABusyAgentGetsAllThatIsPasted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := 0
		sh := terminalOfSize(t, 24, 80, func(b []byte) error {
			if got == 0 {
				time.Sleep(keysTime / 2)
			}
			got += len(b)
			return nil
		})
		ours, client := net.Pipe()
		left := make(chan struct{})
		go func() {
			defer close(left)
			sh.listen(&joiner{conn: ours})
		}()
		for range 3 * keysKept {
			if err := sendFrame(client, inputFrame, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		<-left
		synctest.Wait()
		if got != 3*keysKept {
			t.Errorf("it has got %d of %d keys", got, 3*keysKept)
		}
	})
}
