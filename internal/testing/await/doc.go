// Package await lets a test wait for what nothing announces: a file of another process, a state that has no channel.
//
// It looks again and again, and fails the test after two minutes with what was waited for and what was seen last. That bound is
// against hanging alone and judges no speed. What announces itself is waited for with a channel, and time that only has to pass
// under testing/synctest.
//
// Starts no goroutine.
package await
