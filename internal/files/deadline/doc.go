// Package deadline combines deadlines, of which the zero time is none: it never comes.
//
// It starts no goroutine and looks at no clock.
package deadline
