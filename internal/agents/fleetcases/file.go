package fleetcases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

// format is the version of the file, sizeLimit its largest size in bytes.
const (
	format    = 1
	sizeLimit = 4 << 20
)

// Case is something that this machine's monitor tells people of.
type Case struct {
	// ID is the case's own; no other has it.
	ID string `json:"id"`
	// Agent is the key of the incident, such as "machine:build1"; Class says what is wrong.
	Agent string `json:"agent"`
	Class string `json:"class"`
	// Name is what people call it; Details say more; Members are the agents that it is about.
	Name    string    `json:"name"`
	Details string    `json:"details"`
	Members []string  `json:"members,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Over is how it has ended, at Ended; "": it has not. Recovered says that nothing is wrong any more.
	Over      string    `json:"over,omitempty"`
	Ended     time.Time `json:"ended,omitzero"`
	Recovered bool      `json:"recovered,omitempty"`
	// Withdrawn says that another machine tells of it: what was not sent yet is not to be.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

type file struct {
	Version int    `json:"version"`
	Cases   []Case `json:"cases"`
}

// Read returns the cases of a file; none if there is no file.
func Read(path string) ([]Case, error) {
	text, err := atomicfile.Read(path, sizeLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f file
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err == nil {
		err = stateversion.Check(path, f.Version, format)
	}
	if err != nil {
		return nil, fmt.Errorf("cases of the fleet: %w", err)
	}
	return f.Cases, nil
}

// Write replaces the file, whose directory exists.
func Write(path string, cases []Case) error {
	text, err := json.Marshal(file{format, cases})
	if err == nil {
		err = atomicfile.WriteDurably(path, text)
	}
	if err != nil {
		return fmt.Errorf("cases of the fleet: %w", err)
	}
	return nil
}
