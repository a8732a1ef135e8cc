// Package heartbeat takes signs of life in every form that agents, their wrappers and other monitors' clients give them:
//
//   - files: our own hb/<agent>.json ([Write], [ReadFile]), Gas Town's heartbeat and agent-deck's hook files;
//   - HTTP: pings of healthchecks, pushes of Uptime Kuma, results for Gatus ([Intake]);
//   - datagrams of sd_notify ([Listen]; Linux only).
//
// Each becomes an [Observation], and nothing more: what it means is decided elsewhere. Nothing here makes up a sign of life,
// and a sign that cannot be read is none: it never counts as silence, and never as a beat.
//
// # Goroutines
//
// A [Listener] has one, which [Listen] starts and [Listener.Close] ends and waits for. There is no other: [Intake] works on
// the goroutines of its HTTP server.
package heartbeat
