package watch

import (
	"path"
	"strings"
)

// noiseDirs hold generated, downloaded or compiled files: never a server's own source, and often many.
var noiseDirs = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, ".bzr": true,
	"node_modules": true, "bower_components": true, ".yarn": true, ".pnpm-store": true, ".parcel-cache": true, ".turbo": true,
	"__pycache__": true, ".venv": true, ".tox": true, ".nox": true, ".eggs": true,
	".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".hypothesis": true, ".ipynb_checkpoints": true,
	".gradle": true, ".idea": true, ".vs": true, ".direnv": true, ".terraform": true,
}

// noiseNames are patterns of [path.Match] for files that editors and file managers leave beside the real ones.
var noiseNames = []string{
	"*~", "*.bak", "*.tmp", "*.orig", // Emacs, many; "git mergetool"
	".*.sw[a-p]", ".sw[a-p]", "*.sw[op]", // vim
	".#*", "#*#", // Emacs: lock and autosave
	"*___jb_tmp___", "*___jb_old___", // JetBrains
	".goutputstream-*", ".*.kate-swp", "*.kate-swp",
	".nfs*", ".fuse_hidden*", // deleted, but still open
	".DS_Store", "._*", "Thumbs.db", "desktop.ini",
	"*.py[co]",
	".mcp_restart_marker*", // outlive's own, at restart_server
}

// noisyName reports whether a file or directory of this name is never watched, unless a glob spells it out.
func noisyName(name string, isDir bool) bool {
	if isDir {
		return noiseDirs[name]
	}
	for _, pattern := range noiseNames {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// noisy reports whether rel, a slash path, has noise among its elements.
func noisy(rel string, isDir bool) bool {
	for {
		dir, rest, more := strings.Cut(rel, "/")
		if !more {
			return noisyName(rel, isDir)
		}
		if noisyName(dir, true) {
			return true
		}
		rel = rest
	}
}
