package judge

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// Format is the version of digests and records.
const Format = 1

// Digest is what a machine says of itself every [Beat], under its own name.
type Digest struct {
	Format int `json:"v"`
	// Incarnation is the run of the machine's program, and Beat the number of the digest: by these it is noticed.
	Incarnation string    `json:"inc"`
	Beat        uint64    `json:"beat"`
	At          time.Time `json:"at"`      // by the machine's clock
	Version     string    `json:"version"` // of outlive
	Servers     int       `json:"servers"`
	Agents      int       `json:"agents"`
	Incidents   int       `json:"incidents"` // that are open
	// Left says that the machine's program has ended as it should: it is not silent.
	Left bool `json:"left,omitempty"`
	// Reach is whom it can tell.
	Reach    Reach     `json:"reach,omitempty"`
	Troubles []Trouble `json:"troubles,omitempty"`
}

// Trouble is one that machines may share. Others are their machine's alone, and not told here.
type Trouble struct {
	// Cause is equal for all that have it, such as "account:claude:limit".
	Cause string `json:"cause"`
	Agent string `json:"agent"` // by its name on its machine
	// Told says that the machine has told of it by itself, because it was cut off.
	Told bool `json:"told,omitempty"`
}

// Address is where a machine is asked, with an empty question, whether it lives: any answer says so.
func Address(host string) string { return engine.Key("run", host) }

// Digests is the table of the machines' digests.
const Digests = "digest"

func parseDigest(host string, text []byte) (Digest, error) {
	var d Digest
	if err := json.Unmarshal(text, &d); err != nil {
		return Digest{}, fmt.Errorf("a machine's digest: %w", err)
	}
	return d, stateversion.Check("the digest of "+host, d.Format, Format)
}

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and times of this century
	}
	return text
}
