// Package heartbeat receives signs of life in the forms in which agents and their wrappers send them:
//
//   - files: hb/<agent>.json ([Write], [ReadFile]);
//   - HTTP: pings of healthchecks ([Intake]);
//   - datagrams of sd_notify ([Listen]; Linux only).
//
// Each becomes an [Observation]; what it means is decided elsewhere. The package invents no sign of life. A sign that
// cannot be read is an error: it counts neither as a beat nor as silence. Of a datagram that is too long, the lines that
// could be read count.
//
// # Goroutines
//
// A [Listener] has one, which [Listen] starts; [Listener.Close] ends it and waits for it. There is no other: [Intake]
// works on the goroutines of its HTTP server.
package heartbeat
