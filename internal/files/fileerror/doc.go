// Package fileerror describes mistakes and warnings in files that people write: the position, what is wrong, what to
// do about it, and how that is shown.
//
// A [Source] is the text: it converts the offsets, lines and columns of parsers to a [Pos], and formats a [Problem]
// as file:line:column with the line itself and a caret below. [Problems] are all mistakes of a file, as one error.
// [DidYouMean] finds the word that was probably meant.
//
// Terminal control characters are removed when a problem is formatted, so that callers may quote what they read.
// Callers say what has to be hidden: [Source.Hide] finds secrets wherever a problem is shown, and [Problem.Secret]
// leaves out a whole line.
//
// The package knows nothing about the content of files, and no parser. There is no goroutine, and a Source must not be used by two
// goroutines at once.
package fileerror
