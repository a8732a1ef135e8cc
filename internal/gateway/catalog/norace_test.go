//go:build !race

package catalog

// modelChecks is the default number of cases of each random test.
const modelChecks = "100"
