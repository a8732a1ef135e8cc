//go:build !race

package notify

// faultStride is every how manieth step goes wrong.
const faultStride = 1
