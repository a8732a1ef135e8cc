//go:build !race

package cli

// upgrades is how often a program that relays is replaced, and how often once more in a row.
const upgrades = 20
