// Package tree parses YAML, JSON (with comments and trailing commas) and TOML into trees of values with their positions, and
// changes single values of such a text. Everything else is kept byte for byte: comments, order, indentation, line ends, the
// byte order mark.
//
// The three formats make the same kind of [Node]. [Read] is for files whose meaning is wanted: it reports every mistake that it
// can find as a [fileerror.Problem] (syntax errors in plain words, duplicate keys, an alias that contains itself), and an
// alias has the members of what it refers to, so that a tree is as small as its file. What values are valid is defined by
// a table: package schema checks a tree against one. The result of the check is kept in the nodes: a bad node is treated as
// not given.
//
// [Open] is for files that are edited: there a duplicate key is there twice, an alias is an alias, and << is an ordinary
// key, because an edit must not change other parts of the text. Edits are splices in the text: [Doc.Set]
// and [Doc.Delete] by path, [Doc.Replace], [Doc.Insert] and [Doc.Remove] by node. In every format, entries are
// arranged in one of two ways: in brackets with commas (brackets.go), or on lines of their own (lines.go: blocks of
// YAML, tables of TOML).
//
// [Doc.Text] parses the result of the edits, and compares it with the intended tree. What cannot be edited safely is
// refused with its line and column, as a [fileerror.Problems]: values with an anchor or a tag, the targets of
// aliases, and keys in unusual forms.
//
// There is no goroutine. A tree is not synchronised; it belongs to the goroutine that made it.
package tree
