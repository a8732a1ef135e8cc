package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outlive-mcp/outlive/internal/keep/child"
)

// TestLeftOver: a process counts as left over once a keeper has had its time to end it, from the end of its own outlive on.
func TestLeftOver(t *testing.T) {
	first, stays := child.Stray{PID: 11, Outlive: 10}, child.Stray{PID: 21, Outlive: 20}
	for name, c := range map[string]struct {
		stays bool // one that nobody ends, beside those that keepers are just ending
		want  []child.Stray
	}{
		"nothing stays": {},
		"one stays":     {stays: true, want: []child.Stray{stays}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got, err := leftOver(func() (list []child.Stray, err error) {
					// One outlive after the other is killed, and each keeper takes half a second.
					if since := time.Since(began); since < 500*time.Millisecond {
						list = append(list, first)
					} else {
						list = append(list, child.Stray{PID: 31, Outlive: int(since / (500 * time.Millisecond))})
					}
					if c.stays {
						list = append(list, stays)
					}
					return list, nil
				})
				if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
					t.Errorf("%v\n%s", err, diff)
				}
			})
		})
	}
}
