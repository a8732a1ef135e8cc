package bridge

import (
	"flag"
	"os"
	"testing"
)

// TestMain sets the default of -rapid.checks; what the command line says counts all the same.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", modelChecks); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
