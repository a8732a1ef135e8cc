// Package overview is everything that outlive keeps alive on a machine, as one value that page, terminal, metrics and scripts show:
// servers, agents and incidents, and which events of the last 24 hours people are shown.
//
// [Of] makes it from what was gathered: the status of every control socket, events, and what the monitor knows of its agents.
// It is pure, and starts no goroutine. The monitor's wing is not imported: whoever knows it fills in [Home].
package overview
