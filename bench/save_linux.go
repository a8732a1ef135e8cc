package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// savedServer is a server that people edit: %s is what its tool answers. It needs Python and nothing else.
const savedServer = `import asyncio, json, sys
def answer(m):
    if m["method"] == "initialize":
        return {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "saved", "version": "1"}}
    if m["method"] == "tools/list":
        return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    return {"content": [{"type": "text", "text": "%s"}]}
for line in sys.stdin:
    m = json.loads(line)
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": answer(m)}, separators=(",", ":")), flush=True)
`

// savePause is the time between two calls while files are saved.
const savePause = 2 * time.Millisecond

// saveFigures are the outcome of saves that broke a watched server, each mended by the next. Times in ms.
type saveFigures struct {
	count, calls, failed int
	start                float64 // the server's own: exec → first answer, median
	live                 float64 // the mending save → first answer of what it saved, median
	worst                float64
}

func (s saveFigures) outcome() outcome {
	t := figures.Table{
		Title: "Saves of a watched server, ms",
		Note: "`--watch`, a Python server, calls all the while. Each save with a syntax error is followed by one that mends it. " +
			"Live: from the mending save to the first answer of what it saved; 200 of them outlive waits for further saves.",
		Rows: [][]string{{"", "broken saves", "calls", "failed", "own start", "live", "longest", "live − own start"}},
	}
	t.Add("Python", s.count, figures.Number(float64(s.calls)), s.failed, s.start, s.live, s.worst, s.live-s.start)
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: fmt.Sprintf("calls failed over %d broken saves", s.count), got: float64(s.failed), limit: 0},
		{name: "mended save is live, over the server's start", got: s.live - s.start, limit: 300, unit: " ms"}}}
}

// saves edits a Python server that outlive watches, while calls keep coming: a save that breaks it, then one that mends
// it.
func (b *bench) saves() (outcome, error) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		b.fail("broken saves: %v", err)
		return outcome{}, nil
	}
	path := filepath.Join(b.dir, "saved.py")
	if err := save(path, fmt.Sprintf(savedServer, "version 0")); err != nil {
		return outcome{}, err
	}
	server := []string{interpreter, path}
	p, j, err := b.startTold(server, "--watch", path)
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	p.load(200, 1)
	f := &flow{peer: p, inFlight: 1, pause: savePause}
	out := saveFigures{count: b.plan.saves}
	var own, live []float64
	for i := range b.plan.saves {
		b.say("broken save and mended save: %d of %d", i+1, b.plan.saves)
		_, answered, err := b.coldStart(direct, server)
		if err != nil {
			return outcome{}, err
		}
		own = append(own, answered)
		took, calls, err := f.breakAndMend(j, path, i+1)
		if err != nil {
			return outcome{}, fmt.Errorf("save %d: %w", i+1, err)
		}
		live = append(live, took)
		out.calls += calls
		time.Sleep(throttleTime)
	}
	out.failed, out.start, out.live, out.worst = len(f.failed), figures.Median(own), figures.Median(live), figures.Percentile(live, 1)
	return out.outcome(), nil
}

// breakAndMend saves what does not compile, waits until outlive has tried it, then saves what does and returns how many
// ms later its first answer came. Calls keep coming.
func (f *flow) breakAndMend(j *journal, path string, n int) (live float64, calls int, err error) {
	if err := save(path, "def broken(:\n"); err != nil {
		return 0, 0, err
	}
	waits, err := f.run(func() (bool, error) {
		err := j.read()
		return j.count("reload_failed") >= n, err
	})
	if err != nil {
		return 0, 0, err
	}
	calls = len(waits)
	time.Sleep(throttleTime) // a save within a second of the last waits for its turn
	wanted, seen := fmt.Sprintf("version %d", n), time.Time{}
	f.answered = func(line []byte) {
		if seen.IsZero() && bytes.Contains(line, []byte(wanted)) {
			seen = time.Now()
		}
	}
	defer func() { f.answered = nil }()
	begin := time.Now()
	if err := save(path, fmt.Sprintf(savedServer, wanted)); err != nil {
		return 0, 0, err
	}
	waits, err = f.run(func() (bool, error) { return !seen.IsZero(), nil })
	return milliseconds(seen.Sub(begin)), calls + len(waits), err
}

// save writes a file as editors do: beside it, then over it.
func save(path, text string) error {
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}
