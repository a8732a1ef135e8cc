package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// launchers are the files of npm/ and pypi/ that are the same in every release.
//
//go:embed npm all:pypi
var launchers embed.FS

// npmScope is before the names of the packages with the programs.
const npmScope = "@outlive-mcp/"

// npmNames are the systems and processors that Node calls otherwise than Go.
var npmNames = map[string]string{"windows": "win32", "amd64": "x64"}

// nodes is a system or processor in Node's words.
func nodes(word string) string {
	if name := npmNames[word]; name != "" {
		return name
	}
	return word
}

// npmPackage is what a package.json says.
type npmPackage struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	Homepage             string            `json:"homepage"`
	Repository           map[string]string `json:"repository"`
	License              string            `json:"license"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	Bin                  map[string]string `json:"bin,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
	MCPName              string            `json:"mcpName,omitempty"` // read by the MCP registry
}

func (d *dist) npmPackage(name string) npmPackage {
	return npmPackage{Name: name, Version: d.text, Description: summary, Homepage: homepage, License: "Apache-2.0",
		Repository: map[string]string{"type": "git", "url": "git+" + homepage + ".git"}}
}

// npm makes a package for each target, and outlive-mcp, which depends on all of them: npm installs only the one whose os and
// cpu are the machine's. There is no script that npm would run at installation.
func (d *dist) npm() error {
	top := d.npmPackage("outlive-mcp")
	top.Bin = map[string]string{"outlive": "bin/outlive.js", "outlive-mcp": "bin/outlive.js"}
	top.MCPName = registryName
	top.Engines = map[string]string{"node": ">=18"}
	top.OptionalDependencies = map[string]string{}
	for _, t := range every { // in a part of a release, too: the package is the same
		top.OptionalDependencies[npmScope+nodes(t.os)+"-"+nodes(t.arch)] = d.text
	}
	for _, p := range d.programs {
		system, processor := nodes(p.os), nodes(p.arch)
		one := d.npmPackage(npmScope + system + "-" + processor)
		one.OS, one.CPU = []string{system}, []string{processor}
		program, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		readme := fmt.Sprintf("The program outlive for %s on %s. Install outlive-mcp, which chooses the right one.\n", system, processor)
		if err := d.npmPack(fmt.Sprintf("outlive-mcp-%s-%s", system, processor), one, []entry{
			{name: "package/bin/" + p.exe(), text: program, mode: 0o755}, file("package/README.md", []byte(readme)),
		}); err != nil {
			return err
		}
	}
	launcher, err := launchers.ReadFile("npm/outlive.js")
	if err != nil {
		return err
	}
	readme, err := launchers.ReadFile("npm/README.md")
	if err != nil {
		return err
	}
	return d.npmPack("outlive-mcp", top, []entry{{name: "package/bin/outlive.js", text: launcher, mode: 0o755}, file("package/README.md", readme)})
}

// npmPack writes a package as `npm pack` would.
func (d *dist) npmPack(name string, p npmPackage, entries []entry) error {
	about, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	all := append([]entry{file("package/package.json", append(about, '\n'))}, entries...)
	for _, paper := range []string{"LICENSE", notices} {
		text, err := os.ReadFile(filepath.Join(d.stage, "doc", paper))
		if err != nil {
			return err
		}
		all = append(all, file("package/"+paper, text))
	}
	return d.pack(fmt.Sprintf("npm/%s-%s.tgz", name, d.text), all)
}
