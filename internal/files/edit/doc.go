// Package edit changes single values of YAML, JSON (with comments and trailing commas) and TOML. Everything else is
// kept byte for byte: comments, order, indentation, line ends, the byte order mark.
//
// [Open] parses a text into a tree in which every [Node] has its position. Edits are splices in the text: [Doc.Set]
// and [Doc.Delete] by path, [Doc.Replace], [Doc.Insert] and [Doc.Remove] by node. In every format, entries are
// arranged in one of two ways: in brackets with commas (brackets.go), or on lines of their own (lines.go: blocks of
// YAML, tables of TOML).
//
// [Doc.Text] parses the result of the edits, and compares it with the intended tree. What cannot be edited safely is
// refused with its line and column, as a [fileerror.Problems]: values with an anchor or a tag, the targets of
// aliases, and keys in unusual forms.
//
// A duplicate key is there twice, an alias is an alias, and << is an ordinary key, because an edit must not change
// other parts of the text. Package tree resolves what a file means; it reads JSON and TOML with [Read].
//
// So there are two trees: a [Node] here has one container and byte ranges for every part of its entry, while a tree.Node
// may be shared by aliases, has unique members and keeps the result of checks.
//
// There is no goroutine. A Doc is not synchronised; it belongs to the goroutine that opened it.
package edit
