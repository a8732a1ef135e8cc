// Package tree parses files that people write into trees of values with their positions.
//
// [YAML], [JSON] (with comments) and [TOML] make the same kind of [Node], so that one reader works for all three.
// Each reports every mistake that it can find as a [fileerror.Problem]: syntax errors in plain words, duplicate keys,
// an alias that contains itself. Aliases share nodes, so that a tree is as small as its file.
//
// What values are valid is defined by a table: package schema checks a tree against one. The result of the check is
// kept in the nodes: a bad node is treated as not given.
//
// There is no goroutine. A tree is not synchronised; it belongs to the goroutine that made it.
package tree
