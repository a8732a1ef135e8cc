package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"time"
)

// A source is something that is read again and again: a file that grows, a command that says how things are.
type source func() []byte

// file is the content of a file of the workspace: hooks.jsonl, an event log.
func (w *workspace) file(name string) source {
	return func() []byte {
		data, _ := os.ReadFile(w.path(name)) // it comes later
		return data
	}
}

// says is what a command of the agent's user prints: `claude agents --json`, `outlive agent explain shop --json`.
func (a *agent) says(argv ...string) source {
	return func() []byte {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = a.project, a.cmd.Env
		out, _ := cmd.Output() // a command that fails says nothing
		return out
	}
}

// records are the JSON objects in data, one after the other or in lists. What is cut off at the end is left out.
func records(data []byte) []map[string]any {
	var all []map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var v any
		if dec.Decode(&v) != nil {
			return all
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, one := range list {
			if object, ok := one.(map[string]any); ok {
				all = append(all, object)
			}
		}
	}
}

// awaitRecord waits until from has a record in which every member of want has its value, and returns it.
func (a *agent) awaitRecord(from source, want map[string]any) map[string]any {
	a.t.Helper()
	for end := time.Now().Add(longPatience); ; time.Sleep(20 * time.Millisecond) {
		data := from()
		for _, record := range records(data) {
			if contains(record, want) {
				return record
			}
		}
		if time.Now().After(end) {
			a.t.Fatalf("%s in mode %s: no record with %v in\n%s\n%s", a.kind, a.mode, want, data[max(0, len(data)-2000):], a.screen())
		}
	}
}

func contains(record, want map[string]any) bool {
	for name, value := range want {
		if record[name] != value {
			return false
		}
	}
	return true
}
