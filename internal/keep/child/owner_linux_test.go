package child

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOwner(t *testing.T) {
	self := makeTag(7, 100, 11)
	nested := makeTag(7, 501, 12) // an outlive that is a server of ours
	other := makeTag(7, 900, 13)
	servers := []candidate{{slot: 1, leader: 501}, {slot: 2, leader: 502}, {slot: 3, leader: 503, spares: true}}
	tests := []struct {
		name  string
		k     orphan
		slot  int
		known bool
	}{
		{"nothing is known", orphan{session: 9, group: 9}, 0, false},
		{"by its limit", orphan{limitTag: self.with(2), session: 9}, 2, true},
		{"the limit counts more than the session", orphan{limitTag: self.with(2), session: 501}, 2, true},
		{"by its session, all else shed", orphan{session: 502, group: 9}, 2, true},
		{"by its group", orphan{session: 9, group: 501}, 1, true},
		{"by the session of a server that spares", orphan{session: 503}, spared, true},
		{"the session counts more than the environment", orphan{session: 501, environTag: self.with(2)}, 1, true},
		{"by its environment", orphan{session: 9, environTag: self.with(1)}, 1, true},
		{"spared", orphan{limitTag: self.with(spared), session: 501}, spared, true},
		{"spared, as its environment says", orphan{session: 9, environTag: self.with(spared)}, spared, true},
		{"of a server that has been reported", orphan{limitTag: self.with(8)}, 8, true},
		{"of an outlive that is our server", orphan{limitTag: nested.with(5)}, 1, true},
		{"of an outlive that nobody knows", orphan{limitTag: other.with(1)}, 0, false},
		{"of a nested outlive that spares it", orphan{limitTag: nested.with(spared)}, spared, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if slot, known := owner(tt.k, self, servers); slot != tt.slot || known != tt.known {
				t.Errorf("owner %d %v, want %d %v", slot, known, tt.slot, tt.known)
			}
		})
	}
}

func TestMustDie(t *testing.T) {
	self := makeTag(7, 100, 11)
	a, b := candidate{slot: 1, leader: 501}, candidate{slot: 2, leader: 502}
	both, alone := []candidate{a, b}, []candidate{a}
	unknown := orphan{session: 9, group: 9}
	tests := []struct {
		name    string
		k       orphan
		servers []candidate
		spares  bool
		want    bool
	}{
		{"its own", orphan{limitTag: self.with(1)}, both, false, true},
		{"another's", orphan{limitTag: self.with(2)}, both, false, false},
		{"spared", orphan{limitTag: self.with(spared)}, alone, true, false},
		{"left over", orphan{limitTag: self.with(7)}, both, false, true},
		{"unknown, one of two servers'", unknown, both, false, false},
		{"unknown, but there is one server only", unknown, alone, false, true},
		{"unknown, and perhaps spared", unknown, alone, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := mustDie(tt.k, self, a, tt.servers, tt.spares); got != tt.want {
				t.Errorf("mustDie %v", got)
			}
		})
	}
}

func TestUnclaimed(t *testing.T) {
	start := time.Unix(1000, 0)
	seen, reap := unclaimed(nil, []int{5, 6}, start)
	if len(reap) > 0 {
		t.Errorf("reaped at first sight: %v", reap)
	}
	seen, reap = unclaimed(seen, []int{6, 7}, start.Add(forgottenAfter-1)) // 5 was waited for
	if len(reap) > 0 {
		t.Errorf("reaped too early: %v", reap)
	}
	seen, reap = unclaimed(seen, []int{5, 6, 7}, start.Add(forgottenAfter)) // another 5
	if d := cmp.Diff([]int{6}, reap); d != "" {
		t.Errorf("reaped (-want +got):\n%s", d)
	}
	want := map[int]time.Time{5: start.Add(forgottenAfter), 7: start.Add(forgottenAfter - 1)}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("waiting (-want +got):\n%s", d)
	}
}
