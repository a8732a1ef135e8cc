package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// releases is where the archives of a version are.
func (d *dist) releases() string { return homepage + "/releases/download/v" + d.text + "/" }

func sumOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// cask is for Homebrew, on macOS and Linux.
var cask = template.Must(template.New("").Parse(`cask "outlive" do
  version "{{.Version}}"
  name "outlive"
  desc "{{.Summary}}"
  homepage "{{.Homepage}}"
{{range .Systems}}
  on_{{.Name}} do
{{range .Programs}}    on_{{.Processor}} do
      sha256 "{{.Sum}}"
      url "{{.URL}}"
      binary "{{.Folder}}/outlive"
      bash_completion "{{.Folder}}/completions/outlive.bash"
      zsh_completion "{{.Folder}}/completions/_outlive"
      fish_completion "{{.Folder}}/completions/outlive.fish"
{{range .Pages}}      manpage "{{.}}"
{{end}}    end
{{end}}  end
{{end}}end
`))

type caskSystem struct {
	Name     string
	Programs []caskProgram
}

type caskProgram struct {
	Processor, Sum, URL, Folder string
	Pages                       []string
}

// manifests makes the cask and scoop's manifest, of the targets that there are.
func (d *dist) manifests() error {
	pages, err := d.staged("man", "")
	if err != nil {
		return err
	}
	systems := []caskSystem{{Name: "macos"}, {Name: "linux"}}
	scoop := map[string]any{}
	for _, p := range d.programs {
		name := d.archiveName("outlive", p.target)
		sum, err := sumOf(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		if p.os == "windows" {
			scoop[map[string]string{"amd64": "64bit", "arm64": "arm64"}[p.arch]] = map[string]string{
				"url": d.releases() + name, "hash": sum, "extract_dir": strings.TrimSuffix(name, ".zip"),
			}
			continue
		}
		one := caskProgram{Processor: map[string]string{"amd64": "intel", "arm64": "arm"}[p.arch], Sum: sum, URL: d.releases() + name, Folder: strings.TrimSuffix(name, ".tar.gz")}
		for _, page := range pages {
			one.Pages = append(one.Pages, one.Folder+"/man/man1/"+page.name)
		}
		i := 0
		if p.os == "linux" {
			i = 1
		}
		systems[i].Programs = append(systems[i].Programs, one)
	}
	systems = slices.DeleteFunc(systems, func(s caskSystem) bool { return s.Programs == nil })
	var b strings.Builder
	if err := cask.Execute(&b, map[string]any{"Version": d.text, "Summary": summary, "Homepage": homepage, "Systems": systems}); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(d.out, "homebrew", "outlive.rb"), []byte(b.String())); err != nil {
		return err
	}
	if len(scoop) == 0 {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{
		"version": d.text, "description": summary, "homepage": homepage, "license": "Apache-2.0", "architecture": scoop, "bin": "outlive.exe",
	}, "", "    ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.out, "scoop", "outlive.json"), append(text, '\n'))
}

// sums writes the digests of all files, as sha256sum does, and shows their sizes.
func (d *dist) sums() error {
	var b strings.Builder
	err := filepath.WalkDir(d.out, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == marker {
			return err
		}
		name, err := filepath.Rel(d.out, path)
		if err != nil {
			return err
		}
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%9.1f MB  %s\n", float64(info.Size())/1e6, filepath.ToSlash(name))
		fmt.Fprintf(&b, "%s  %s\n", sum, filepath.ToSlash(name))
		return nil
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(d.out, marker), []byte(b.String()))
}
