// Package tier says which of the project's checks a run makes, and fixes what tests draw at random.
//
// There are three tiers. The door (.ci/run, and go test ./...) is a function of the tree: fixed seeds, no verdict by the clock. The
// full run (.ci/run full) also judges times and lets storms run. The hunt (.ci/hunt) draws new seeds until it is ended. A run says
// which one it is by OUTLIVE_TIER: door (if it is not set), full or hunt.
//
// Importing this package, also for nothing else, gives rapid the fixed seed 1 in place of one from the clock. RAPID_SEED and
// -rapid.seed still win.
//
// Starts no goroutine.
package tier
