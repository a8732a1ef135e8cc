package hostpath

import (
	"path/filepath"
	"strings"
)

// Abs is an absolute path of this system: /home/u, or C:\home\u.
func Abs(path string) string { return drive + filepath.FromSlash(path) }

// Slashed is the reverse of [Abs]. Whatever is not an absolute path of this system is returned as it is.
func Slashed(path string) string {
	if drive == "" || !strings.HasPrefix(path, drive) {
		return path
	}
	return filepath.ToSlash(strings.TrimPrefix(path, drive))
}

// InText changes all paths in a text that begin with one of roots so that they are absolute, with slashes, as they may stand in
// JSON and YAML: /home/u, or C:/home/u.
func InText(text string, roots ...string) string {
	if drive == "" {
		return text
	}
	for _, root := range roots {
		text = strings.ReplaceAll(text, root, drive+root)
	}
	return text
}
