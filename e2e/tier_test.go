package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// tiers are what OUTLIVE_TIER may say: the door is what a submission has to pass, the others are told apart by who runs them.
var tiers = []string{"door", "full", "hunt"}

// tierOf is the tier of this run; unset, OUTLIVE_TIER means the door.
func tierOf() string {
	if name := os.Getenv("OUTLIVE_TIER"); name != "" {
		return name
	}
	return "door"
}

func checkTier() error {
	if name := tierOf(); !slices.Contains(tiers, name) {
		return fmt.Errorf("OUTLIVE_TIER=%s: want one of %q", name, tiers)
	}
	return nil
}

// full reports whether this run judges times, has storms and tries everything with everything. The door does not: what it says must
// depend on the tree alone, and not on how busy the machine is.
func full() bool { return tierOf() != "door" }

// needFull leaves a test out at the door. why says what it judges that is no function of the tree, or what it costs.
func needFull(t *testing.T, why string) {
	t.Helper()
	if !full() {
		t.Skip("left to .ci/run full: " + why)
	}
}

// needHunt leaves a test out but in a hunt. why says what it costs, and which test of the full run has its parts.
func needHunt(t *testing.T, why string) {
	t.Helper()
	if tierOf() != "hunt" {
		t.Skip("left to .ci/hunt: " + why)
	}
}

// oneOfThree leaves two of three rows of a table to the hunt: rows that each start a real CLI.
func oneOfThree(row int) bool { return tierOf() == "hunt" || row%3 == 0 }

// onePerKind leaves a subtest out at the door unless it is the one that stands for its kind: rows of a table that run the same code of
// outlive with another client, server or setting.
func onePerKind(t *testing.T, stands bool) {
	t.Helper()
	if !stands {
		needFull(t, "another row of this table has each of its parts")
	}
}

// besideOthers lets a test run in parallel at the door. In full it has the machine for itself, because it judges times there.
func besideOthers(t *testing.T) {
	t.Helper()
	if !full() {
		t.Parallel()
	}
}

// hanging is how long the door waits for what must happen: it is no judgement of speed, only an end to waiting.
const hanging = 2 * time.Minute

// inFull is a limit that judges how long something takes. The door, which does not judge that, has the bound against hanging in its place.
func inFull(limit time.Duration) time.Duration {
	if full() {
		return limit
	}
	return max(limit, hanging)
}

// patience is how long a test waits for something that must happen. It judges nothing: the machine may be busy.
const patience = hanging
