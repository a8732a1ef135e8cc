//go:build race

package bridge

// modelChecks is how many cases each random test draws, unless told. The detector makes each several times as slow.
const modelChecks = "30"
