//go:build race

package cli

// upgrades is how often a program that relays is replaced, and how often once more in a row. The detector makes each
// start several times as slow.
const upgrades = 8
