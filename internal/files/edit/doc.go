// Package edit changes single values of YAML, JSON (with comments and trailing commas) and TOML. Everything else stays byte
// for byte: comments, order, indentation, line ends, the byte order mark.
//
// [Open] makes a tree of a text, in which every [Node] knows where it stands. Edits are splices in the text: [Doc.Set] and
// [Doc.Delete] by path, [Doc.Replace], [Doc.Insert] and [Doc.Remove] by node. There are two ways in which entries stand together,
// whatever the format: in brackets with commas (brackets.go), and on lines of their own (lines.go: blocks of YAML, tables of TOML).
//
// [Doc.Text] reads what an edit has made, and compares it with what was to come of it. What cannot be edited safely is refused with
// its line and column, as a [fileerror.Problems]: values with an anchor or a tag, what an alias stands for, keys in a form that
// people do not write.
//
// A key that is given twice is here twice, an alias is an alias and << is a key like others: an edit must not change what stands
// elsewhere. What a file means is told by room tree, which reads JSON and TOML with [Read].
//
// There is no goroutine, and a Doc belongs to whoever opened it.
package edit
