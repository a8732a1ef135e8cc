//go:build race

package backend

// modelChecks is how many histories TestModel draws, unless told. The detector makes each six times as slow.
const modelChecks = "300"
