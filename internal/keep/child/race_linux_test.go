//go:build race

package child

// manyStarts is how many starts the keeper must bear without growing: far more than may be on their way at a time.
const manyStarts = 150
