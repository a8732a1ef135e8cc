//go:build race

package child

// manyEnds is how many processes write and end at once, so that what they wrote is lost if it can be; the detector makes
// each several times as slow.
const manyEnds = 60
