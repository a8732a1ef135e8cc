package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// registryName is what outlive is called in the MCP registry, which wants to read it in the npm package and the wheel, too.
const registryName = "io.github.outlive-mcp/outlive"

// pitch says what the gateway is for, in at most 100 characters.
const pitch = "Many MCP servers behind one that stays: they may crash or restart, and clients go on"

// bundleName is the name of a target's MCP bundle.
func (d *dist) bundleName(t target) string {
	return fmt.Sprintf("outlive_%s_%s_%s.mcpb", d.text, t.os, t.arch)
}

// bundles makes an MCP bundle for each target: the gateway, for clients that install servers from such files. The only
// question that it asks is which servers there are.
func (d *dist) bundles() error {
	for _, p := range d.programs {
		program := "server/" + p.exe()
		about, err := json.MarshalIndent(map[string]any{
			"manifest_version": "0.3", "name": "outlive", "display_name": "outlive gateway", "version": d.text, "description": pitch, "license": "Apache-2.0",
			"author":     map[string]string{"name": "The outlive authors", "url": homepage},
			"repository": map[string]string{"type": "git", "url": homepage + ".git"}, "homepage": homepage, "documentation": homepage + "/blob/main/docs/GATEWAY.md",
			"server": map[string]any{"type": "binary", "entry_point": program, "mcp_config": map[string]any{
				"command": "${__dirname}/" + program, "args": []string{"gateway", "-c", "${user_config.file}"}, "env": map[string]string{},
			}},
			"tools_generated": true,
			"compatibility":   map[string]any{"platforms": []string{nodes(p.os)}},
			"user_config": map[string]any{"file": map[string]any{
				"type": "file", "title": "Servers", "description": "outlive.yaml, or a file with mcpServers, as clients have it", "required": true,
			}},
		}, "", "  ")
		if err != nil {
			return err
		}
		entries := []entry{file("manifest.json", append(about, '\n'))}
		for _, add := range []struct{ name, path string }{{program, p.path}, {"server/" + p.named(otelName), p.otel.path}} {
			text, err := os.ReadFile(add.path)
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: add.name, text: text, mode: 0o755})
		}
		for _, paper := range []string{"LICENSE", notices} {
			text, err := os.ReadFile(filepath.Join(d.stage, "doc", paper))
			if err != nil {
				return err
			}
			entries = append(entries, file(paper, text))
		}
		if err := d.pack(d.bundleName(p.target), entries); err != nil {
			return err
		}
	}
	return d.serverJSON()
}

// serverJSON is what the MCP registry wants to know.
func (d *dist) serverJSON() error {
	gateway := []map[string]any{
		{"type": "positional", "value": "gateway"},
		{"type": "named", "name": "-c", "description": "outlive.yaml, or a file with mcpServers, as clients have it", "format": "filepath", "isRequired": true},
	}
	stdio := map[string]string{"type": "stdio"}
	python, err := pythons(d.text)
	if err != nil {
		return err
	}
	packages := []map[string]any{
		{"registryType": "npm", "identifier": "outlive-mcp", "version": d.text, "runtimeHint": "npx", "transport": stdio, "packageArguments": gateway},
		{"registryType": "pypi", "identifier": "outlive-mcp", "version": python, "runtimeHint": "uvx", "transport": stdio, "packageArguments": gateway},
	}
	for _, p := range d.programs {
		name := d.bundleName(p.target)
		sum, err := sumOf(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		packages = append(packages, map[string]any{"registryType": "mcpb", "identifier": d.releases() + name, "version": d.text, "fileSha256": sum, "transport": stdio})
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    registryName, "title": "outlive", "description": pitch, "version": d.text, "websiteUrl": homepage,
		"repository": map[string]string{"url": homepage, "source": "github"}, "packages": packages,
	}, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.out, "server.json"), append(text, '\n'))
}
