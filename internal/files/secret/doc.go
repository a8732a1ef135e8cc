// Package secret finds secrets in texts that people will see: by how they look, and by what they are called.
//
// [Redact] is for any text. [Words] is for a command line, where the name in front of a value says what it is. [Known] is for a
// text beside a structure in which names and values are known, such as a configuration file.
//
// It cannot know all: a password that looks like any other word, under a name that says nothing, stays. Nothing is kept, and there is
// no goroutine.
package secret
