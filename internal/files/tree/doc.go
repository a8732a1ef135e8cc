// Package tree is a file that people write, as a tree of values that know their places.
//
// [YAML], [JSON] (with comments) and [TOML] make the same kind of [Node], so a reader of one reads all. Each
// tells every mistake that it can as a [fileerror.Problem]: what the parser did not like in words that people can use, keys
// that are given twice, an alias that contains itself. Aliases share nodes, so a tree is as small as its file.
//
// What a value means is told by a table: room schema checks a tree against one. What the walk finds stays in the node: a
// bad one is taken as not given.
//
// There is no goroutine, and a tree belongs to its creator.
package tree
