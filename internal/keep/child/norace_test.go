//go:build !race

package child

// manyEnds is how many processes write and end at once, so that what they wrote is lost if it can be.
const manyEnds = 200
