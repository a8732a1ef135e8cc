// Command outlive-otel exports what outlive does by OpenTelemetry: spans and durations of requests, restarts, recoveries and incidents.
//
// outlive starts it if OTEL_… asks for that, see docs/METRICS.md. It is a program of its own, and a module of its own, so that nobody
// else pays for its libraries. It finds the running outlives of its settings by their control sockets, watches their messages and
// events, and ends by itself when none has been there for a while. One process serves all outlives of the same settings: whoever comes
// second finds the lock held and ends.
//
// With --home it is a monitor's: it has outlive watch tell of that home, and ends when its stdin does.
//
// Each outlive that is watched has two goroutines, one for its messages and one for its events; they end with it. The SDK's exporters
// have their own.
package main
