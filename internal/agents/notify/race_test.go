//go:build race

package notify

// faultStride is every how manieth step goes wrong: the detector makes the database ten times as slow. Each way begins at
// another step, so that together they come to all of them. Without the detector every step goes wrong in every way.
const faultStride = 3
