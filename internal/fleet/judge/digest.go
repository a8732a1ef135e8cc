package judge

import (
	"encoding/json"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// format is the version of digests and records.
const format = 1

// Digest is what a machine says of itself, every [Beat].
type Digest struct {
	Version int `json:"version"`
	// Host is the machine's name, which no other has.
	Host string `json:"host"`
	// Count makes each digest another: by that it is noticed.
	Count uint64 `json:"count"`
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

// BeatKey is where the digest of a machine is.
func BeatKey(host string) string { return engine.Key("beat", host) }

func parseDigest(text []byte) (Digest, error) {
	var d Digest
	if err := json.Unmarshal(text, &d); err != nil {
		return Digest{}, fmt.Errorf("a machine's digest: %w", err)
	}
	return d, stateversion.Check("the digest of "+d.Host, d.Version, format)
}

func jsonOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}
