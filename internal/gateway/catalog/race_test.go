//go:build race

package catalog

// modelChecks is the default number of cases of each random test. With the race detector each takes several times as
// long.
const modelChecks = "30"
