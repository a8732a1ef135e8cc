package main

// quick makes the times short that tests of the monitor and of a fleet with one hub wait for: a fifth, where nothing else is said.
// The machine is as slow as before, so limits within which something must answer are as they are, and so are relations:
//
//   - A lease of 10 s, a third: its holder may be held up for 5 s, as by other tests, and a machine is silent after 6 s.
//   - A machine is shown as silent after four beats instead of two: a beat of 1 s comes late more easily than one of 5 s.
//   - The judge asks a silent machine for 2 s instead of 5 s: less than the silence, so that a machine that does not answer holds nothing up.
//
// Three hubs need up to 9 s to elect a leader, which a lease and a silence must outlast: they are tested with the shipped program only,
// and so are the sessions of a gateway in a fleet.
var quick = []change{
	{"internal/agents/monitor/options.go", "lookEvery = 5 * time.Second", "lookEvery = time.Second"},
	{"internal/agents/monitor/remember.go", "cpuWindow = 10 * time.Second", "cpuWindow = 2 * time.Second"},
	{"internal/agents/diagnose/silent.go", "readingTakes = Span(30 * time.Second)", "readingTakes = Span(6 * time.Second)"}, // goes with cpuWindow
	{"internal/agents/monitor/gatherprocess.go", "outputGrain = 10 * time.Second", "outputGrain = 2 * time.Second"},
	{"internal/agents/monitor/notifiers.go", "unheardFor = 30 * time.Second", "unheardFor = 6 * time.Second"},
	{"internal/agents/monitor/fleetcases.go", "sharedFor = 30 * time.Second", "sharedFor = 6 * time.Second"},
	{"internal/agents/monitor/servers.go", "askServersEvery = 15 * time.Second", "askServersEvery = 3 * time.Second"},
	{"internal/agents/monitor/servertrouble.go", "troubleFor = time.Minute", "troubleFor = 12 * time.Second"},
	{"internal/agents/monitor/servertrouble.go", "loginFor = 5 * time.Second", "loginFor = time.Second"},
	{"internal/agents/monitor/servertrouble.go", "startingFor = 5 * time.Minute", "startingFor = time.Minute"},
	{"internal/agents/monitor/servertrouble.go", "steadyFor = 30 * time.Second", "steadyFor = 6 * time.Second"},

	{"outlive-fleet/publish.go", "stateEvery  = time.Minute", "stateEvery  = 12 * time.Second"},
	{"outlive-fleet/view.go", "silentAfter = 2 * beatEvery", "silentAfter = 4 * beatEvery"},
	{"outlive-fleet/herald.go", "recordEvery = 5 * time.Second", "recordEvery = time.Second"},
	{"outlive-fleet/hub.go", "forgetAgain = 5 * time.Second", "forgetAgain = time.Second"},
	{"internal/fleet/judge/judge.go", "Beat    = 5 * time.Second", "Beat    = time.Second"},
	{"internal/fleet/judge/judge.go", "silence = 30 * time.Second", "silence = 6 * time.Second"},
	{"internal/fleet/judge/judge.go", "settle  = time.Minute", "settle  = 12 * time.Second"},
	{"internal/fleet/judge/judge.go", "askFor  = 5 * time.Second", "askFor  = 2 * time.Second"},
	{"internal/fleet/lease/lease.go", "cmp.Or(o.TTL, 30*time.Second)", "cmp.Or(o.TTL, 10*time.Second)"},
}
