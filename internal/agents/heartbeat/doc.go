// Package heartbeat takes signs of life in the forms that agents and their wrappers give them:
//
//   - files: hb/<agent>.json ([Write], [ReadFile]);
//   - HTTP: pings of healthchecks ([Intake]);
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
