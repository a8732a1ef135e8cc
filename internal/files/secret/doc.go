// Package secret finds secrets in texts that people will see: by their form, and by their names.
//
// [Redact] is for any text. [Words] is for a command line, where the name before a value says what it is. [Known] is
// for a text whose names and values are known from elsewhere, such as a configuration file.
//
// It cannot find all secrets: a password that looks like an ordinary word, under an ordinary name, is not found. The
// package has no state, and there is no goroutine.
package secret
