package main

import (
	"path/filepath"
	"strings"
	"text/template"
)

// wingetID is the package's name among winget's; its manifests lie in folders of these words.
const wingetID = "outlive-mcp.outlive"

// winget are the three manifests of a version. The archives are unpacked as they are and their folder goes on the PATH, so that
// outlive finds its helper beside it.
var winget = map[string]*template.Template{
	"": template.Must(template.New("").Parse(`# yaml-language-server: $schema=https://aka.ms/winget-manifest.version.1.10.0.schema.json
PackageIdentifier: {{.ID}}
PackageVersion: {{.Version}}
DefaultLocale: en-US
ManifestType: version
ManifestVersion: 1.10.0
`)),
	".installer": template.Must(template.New("").Parse(`# yaml-language-server: $schema=https://aka.ms/winget-manifest.installer.1.10.0.schema.json
PackageIdentifier: {{.ID}}
PackageVersion: {{.Version}}
InstallerType: zip
NestedInstallerType: portable
ArchiveBinariesDependOnPath: true
UpgradeBehavior: uninstallPrevious
Commands:
- outlive
ReleaseDate: "{{.Date}}"
Installers:
{{range .Installers}}- Architecture: {{.Processor}}
  InstallerUrl: {{.URL}}
  InstallerSha256: {{.Sum}}
  NestedInstallerFiles:
  - RelativeFilePath: {{.Folder}}\outlive.exe
    PortableCommandAlias: outlive
{{end}}ManifestType: installer
ManifestVersion: 1.10.0
`)),
	".locale.en-US": template.Must(template.New("").Parse(`# yaml-language-server: $schema=https://aka.ms/winget-manifest.defaultLocale.1.10.0.schema.json
PackageIdentifier: {{.ID}}
PackageVersion: {{.Version}}
PackageLocale: en-US
Publisher: The outlive authors
PublisherUrl: {{.Homepage}}
PackageName: outlive
PackageUrl: {{.Homepage}}
License: Apache-2.0
LicenseUrl: {{.Homepage}}/blob/main/LICENSE
ShortDescription: {{.Summary}}
Moniker: outlive
Tags:
- mcp
- model-context-protocol
- supervisor
ReleaseNotesUrl: {{.Homepage}}/releases/tag/v{{.Version}}
ManifestType: defaultLocale
ManifestVersion: 1.10.0
`)),
}

type wingetInstaller struct{ Processor, URL, Sum, Folder string }

// winget writes the manifests of Windows' targets, if there are any.
func (d *dist) winget() error {
	var installers []wingetInstaller
	for _, p := range d.programs {
		if p.os != "windows" {
			continue
		}
		name := d.archiveName("outlive", p.target)
		sum, err := sumOf(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		installers = append(installers, wingetInstaller{
			map[string]string{"amd64": "x64", "arm64": "arm64"}[p.arch], d.releases() + name, strings.ToUpper(sum), strings.TrimSuffix(name, ".zip"),
		})
	}
	if installers == nil {
		return nil
	}
	for kind, text := range winget {
		var b strings.Builder
		if err := text.Execute(&b, map[string]any{
			"ID": wingetID, "Version": d.text, "Date": d.date.Format("2006-01-02"), "Summary": summary, "Homepage": homepage, "Installers": installers,
		}); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(d.out, "winget", wingetID+kind+".yaml"), []byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}
