package monitor

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// beater is an agent of somebody's own, which beats every minute, promises longer silences, and now and then waits or rests.
func beater(a *worker) {
	a.starts("python", "agent.py")
	beats := func(state heartbeat.State, next time.Duration) {
		id := a.living[a.pid].Identity
		o := heartbeat.Observation{Agent: a.name, Wall: a.wall, State: state, Next: next, PID: id.PID, Start: id.Start}
		if err := heartbeat.Write(BeatDir(a.home), o); err != nil {
			a.t.Fatal(err)
		}
	}
	for {
		switch {
		case a.chance(2):
			beats(heartbeat.Working, 30*time.Minute)
			a.waits(time.Minute, 29*time.Minute)
		case a.chance(2):
			beats(heartbeat.Waiting, 0)
			a.question("an answer")
			beats(heartbeat.Working, 0)
			a.waits(50*time.Second, 70*time.Second)
		case a.chance(10):
			for range 10 {
				beats(heartbeat.Idle, 0)
				a.waits(50*time.Second, 70*time.Second)
			}
		default:
			beats(heartbeat.Working, 0)
			a.waits(50*time.Second, 70*time.Second)
			if a.chance(5) {
				a.waits(time.Minute, 100*time.Second) // two beats are late
			}
		}
	}
}

// writer is a command of which only its output is seen: it writes at least every five minutes.
func writer(a *worker) {
	a.starts("sh", "agent.sh")
	for {
		a.reports(func(r *agentrun.Report) {})
		a.waits(time.Second, 5*time.Minute)
	}
}
