package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// maxRecords is the size in bytes at which decisions.jsonl is renamed to decisions.jsonl.1: some ten thousand
// decisions.
const maxRecords = 4 << 20

// Record is a line of decisions.jsonl: a request, and how it ended.
type Record struct {
	Asked   time.Time `json:"asked"`
	Ended   time.Time `json:"ended"`
	ID      string    `json:"id,omitempty"` // of the request; "" when the policy decided
	Vendor  string    `json:"vendor"`
	Session string    `json:"session"`
	Dir     string    `json:"dir"`
	Tool    string    `json:"tool"`
	Command string    `json:"command"` // without secrets
	Outcome Outcome   `json:"outcome"`
	By      string    `json:"by,omitempty"` // the person; "policy" for the user's policy; "" for nobody
	Message string    `json:"message,omitempty"`
}

// RecordsPath is the file of all decisions, the newest last.
func RecordsPath(dir string) string { return filepath.Join(dir, "decisions.jsonl") }

// record appends a line. It is written at once in append mode, so that lines of several hooks do not mix, and it is
// synced to disk before the CLI gets the answer.
func record(dir string, r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record decision: %w", err)
	}
	path := RecordsPath(dir)
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("record decision: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("record decision: %s is not a regular file", path)
	case info.Size() > maxRecords:
		_ = atomicfile.Rename(path, path+".1") // another hook may have renamed it just now
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("record decision: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("record decision: %w", err)
	}
	return nil
}
