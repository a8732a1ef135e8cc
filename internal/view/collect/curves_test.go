package collect

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
)

// Whoever has seen minutes of the future asks for all that is there now.
func TestCurvesOfTheFuture(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	ahead := curve.Part{First: now.AddDate(10, 0, 0).Unix() / 60, Points: []curve.Point{{Known: true}}}
	var k known
	k.addCurves(map[string]curve.Part{"till": ahead})
	if got := k.after(now); got != 0 {
		t.Errorf("it asks for what comes after minute %d", got)
	}
	k.addCurves(map[string]curve.Part{"till": {First: now.Unix() / 60, Points: []curve.Point{{Known: true}}}})
	if got := k.after(now); got != now.Unix()/60 {
		t.Errorf("it asks for what comes after minute %d, want %d", got, now.Unix()/60)
	}
}
