package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFlowWantsOneAnswerForEachCall(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":100000007,"result":{"content":[]}}`
	tests := []struct {
		name   string
		lines  []string
		wrong  bool // an error: the answers are not those of the calls
		failed int
	}{
		{"one answer", []string{good}, false, 0},
		{"a notification between", []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, good}, false, 0},
		{"out of turn", []string{`{"jsonrpc":"2.0","id":100000008,"result":{}}`, good}, false, 0},
		{"twice", []string{good, good}, true, 0},
		{"never asked", []string{`{"jsonrpc":"2.0","id":100000099,"result":{}}`}, true, 0},
		{"no answer at all", []string{`Traceback (most recent call last):`}, true, 0},
		{"an error", []string{`{"jsonrpc":"2.0","id":100000007,"error":{"code":-32603,"message":"no"}}`}, false, 1},
		{"a tool error", []string{`{"jsonrpc":"2.0","id":100000007,"result":{"content":[],"isError":true}}`}, false, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := time.Now()
			f := &flow{peer: &peer{process: &process{name: "peer"}}, begun: map[int]time.Time{100000007: now, 100000008: now}}
			var err error
			for _, line := range test.lines {
				if err = f.take(now, []byte(line)); err != nil {
					break
				}
			}
			if (err != nil) != test.wrong || len(f.failed) != test.failed {
				t.Errorf("error %v, want one: %v; %d failed, want %d", err, test.wrong, len(f.failed), test.failed)
			}
		})
	}
}

func TestJournalReadsWhatIsWholeAndAnEvent(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := &journal{peer: &peer{process: &process{name: "peer", said: file}}}
	for _, text := range []string{
		"the server's own words\n" + `{"event":"server_ready","server_pid":7}` + "\n" + `{"event":"server_re`,
		`ady","server_pid":8}` + "\n" + `{"level":"not an event"}` + "\n",
	} {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := j.read(); err != nil {
			t.Fatal(err)
		}
	}
	if n, pid := j.count("server_ready"), j.serving(); n != 2 || pid != 8 || len(j.events) != 2 {
		t.Errorf("%d servers ready, the last is %d, of %v", n, pid, j.events)
	}
}
