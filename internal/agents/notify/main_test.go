package notify

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(pageAs); how != "" {
		os.Exit(page(how))
	}
	goleak.VerifyTestMain(m)
}
