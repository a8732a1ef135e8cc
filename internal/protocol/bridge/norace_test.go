//go:build !race

package bridge

// modelChecks is how many cases each random test draws, unless told.
const modelChecks = "100"
