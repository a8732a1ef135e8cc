//go:build !race

package backend

// modelChecks is how many histories TestModel draws, unless told.
const modelChecks = "1000"
