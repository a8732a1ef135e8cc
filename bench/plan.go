package main

// longLine is the size of the one line that must pass in bounded memory.
const longLine = 16 << 20

// plan says how much is measured. Counts of calls are per block, chosen so that
// a block takes 5 to 50 ms.
type plan struct {
	Rounds    int // each with processes of its own
	Blocks    int // per scenario, way and round
	Scenarios []scenario
	Starts    int // start-ups and restart gaps per server
	LongLines int
	Reloads   int // planned restarts under load
	Spares    int // kills with a spare, per server
	Announced int // restarts by the tool, per server
	Saves     int // broken ones, each followed by a mended one
	Launches  int // first starts per launcher
	Taps      int // pairs of blocks, watched and not
}

// planFor is the measuring plan; a quick one keeps what is promised.
func planFor(quick bool) plan {
	if quick {
		return plan{
			Rounds: 8, Blocks: 4, Starts: 12, LongLines: 3,
			Reloads: 4, Spares: 8, Announced: 2, Saves: 1, Launches: 1, Taps: 12,
			Scenarios: []scenario{
				{Size: 200, InFlight: 1},
				{Size: 200, InFlight: 1, Think: true},
				{Size: 200, InFlight: 64},
				{Size: 4 << 10, InFlight: 64},
				{Size: 64 << 10, InFlight: 1},
				{Size: 64 << 10, InFlight: 64},
			},
		}
	}
	full := plan{
		Rounds: 6, Blocks: 6, Starts: 30, LongLines: 8,
		Reloads: 40, Spares: 30, Announced: 8, Saves: 8, Launches: 3, Taps: 24,
	}
	for _, think := range []bool{false, true} {
		for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
			for _, inFlight := range []int{1, 64} {
				full.Scenarios = append(full.Scenarios, scenario{Size: size, InFlight: inFlight, Think: think})
			}
		}
	}
	return full
}

// blocks is how many blocks of a scenario one round has. With thinking time a
// block is long, and one holds enough.
func (p plan) blocks(s scenario) int {
	if s.Think {
		return 1
	}
	return p.Blocks
}

// calls is how many calls one block has.
func (s scenario) calls() int {
	switch {
	case s.Think && s.Size == 200 && s.InFlight == 1:
		return 25
	case s.Think:
		return 5 * s.InFlight
	}
	alone, together := 400, 3200
	switch {
	case s.Size >= 1<<20:
		alone, together = 24, 64
	case s.Size >= 64<<10:
		alone, together = 100, 640
	case s.Size >= 4<<10:
		alone, together = 300, 1920
	}
	if s.InFlight == 1 {
		return alone
	}
	return together
}

// warmUp is how many calls precede each block, unmeasured: after another peer's
// turn the caches are that peer's.
func (s scenario) warmUp() int {
	if s.Think || s.Size >= 1<<20 {
		return 2 * s.InFlight
	}
	return max(20, s.InFlight)
}
