// Package fileerror is one mistake, or one warning, in a file that people write: where it is, what is wrong, what to do about
// it, and how all of that is shown.
//
// A [Source] is the text: it turns the offsets, lines and columns of parsers into a [Pos], and shows a [Problem] as
// file:line:column with the line itself and a caret below. [Problems] are all mistakes of a file, as one error. [DidYouMean]
// finds the word that was probably meant, and [YAML] puts into words what a YAML parser did not like.
//
// What a terminal would obey is taken out where a problem is shown, so callers may quote what they read. What has to stay
// hidden is theirs to know: [Source.Hide] finds it wherever a problem is shown, and [Problem.Secret] leaves out a whole line.
//
// Nothing here knows what a file is about, there is no goroutine, and no two of them may use one Source at once.
package fileerror
