package main

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// listed wants that a manifest names a file of the release with its digest.
func listed(t *testing.T, url, sum string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(made(t), marker))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(sums), strings.ToLower(sum)+"  "+filepath.Base(url)+"\n") || !strings.HasPrefix(url, homepage+"/releases/download/v"+isVersion(t)+"/") {
		t.Errorf("%s is not what %s names", sum, url)
	}
}

// winget's manifests have what winget demands, agree with each other, and name programs that are in the archives.
func TestWinget(t *testing.T) {
	dir := filepath.Join(made(t), "winget")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no target of Windows was made, so there is no manifest for winget")
	}
	manifests := map[string]map[string]any{}
	for kind, wanted := range map[string][]string{
		"":              {"PackageIdentifier", "PackageVersion", "DefaultLocale", "ManifestType", "ManifestVersion"},
		".installer":    {"PackageIdentifier", "PackageVersion", "Installers", "ManifestType", "ManifestVersion"},
		".locale.en-US": {"PackageIdentifier", "PackageVersion", "PackageLocale", "Publisher", "PackageName", "License", "ShortDescription", "ManifestType", "ManifestVersion"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, wingetID+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := yaml.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		for _, key := range wanted {
			if m[key] == nil {
				t.Errorf("%s has no %s", kind, key)
			}
		}
		if m["PackageIdentifier"] != wingetID || m["PackageVersion"] != isVersion(t) || m["ManifestVersion"] != "1.10.0" {
			t.Errorf("%s: %v", kind, m)
		}
		manifests[kind] = m
	}
	for _, one := range manifests[".installer"]["Installers"].([]any) {
		i := one.(map[string]any)
		sum := i["InstallerSha256"].(string)
		if !regexp.MustCompile(`^[0-9A-F]{64}$`).MatchString(sum) {
			t.Errorf("digest %s", sum)
		}
		listed(t, i["InstallerUrl"].(string), sum)
		z, err := zip.OpenReader(filepath.Join(made(t), filepath.Base(i["InstallerUrl"].(string))))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, nested := range i["NestedInstallerFiles"].([]any) {
			name := strings.ReplaceAll(nested.(map[string]any)["RelativeFilePath"].(string), `\`, "/")
			if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == name }) {
				t.Errorf("%s has no %s", i["InstallerUrl"], name)
			}
		}
	}
}

// A client that has unpacked the bundle, and knows where its user's file of servers is, gets the tools of these.
func TestBundle(t *testing.T) {
	t.Parallel()
	from := one(t, "outlive_*_linux_ARCH.mcpb")
	p := newPlace(t)
	p.installed("MCP bundle, unpacked", func() { unzip(t, from, p.dir) }, from)
	var about struct {
		Name, Version, Description string
		Server                     struct {
			Type      string
			Entry     string `json:"entry_point"`
			MCPConfig struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		Compatibility struct{ Platforms []string }
		UserConfig    map[string]struct{ Type string } `json:"user_config"`
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil || about.Version != isVersion(t) || about.Server.Type != "binary" || about.UserConfig["file"].Type != "file" ||
		!slices.Equal(about.Compatibility.Platforms, []string{"linux"}) || len(about.Description) > 100 {
		t.Fatalf("%v: %s", err, text)
	}
	program := filepath.Join(p.dir, about.Server.Entry)
	servers := filepath.Join(t.TempDir(), "outlive.yaml")
	if err := writeFile(servers, []byte("servers:\n  one: {command: "+program+", args: ["+mcptest.ServerArg+"]}\n")); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("${__dirname}", p.dir, "${user_config.file}", servers).Replace
	cmd := exec.Command(fill(about.Server.MCPConfig.Command))
	for _, arg := range about.Server.MCPConfig.Args {
		cmd.Args = append(cmd.Args, fill(arg))
	}
	state := t.TempDir()
	cmd.Dir, cmd.Env = p.home, append(slices.Clone(p.env), "OUTLIVE_STATE_HOME="+state, "XDG_RUNTIME_DIR="+state)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	client := mcptest.NewClient(mcptest.Join(out, in))
	if _, err := client.Initialize(t.Context(), "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	tools, err := client.Tools(t.Context())
	if err != nil || !slices.Contains(tools, "one_echo") {
		t.Errorf("%v, %v", tools, err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Error(err)
	}
	<-client.Done()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the gateway ends with %v", err)
	}
	p.tryOut(program)
	p.removed(p.emptied)
}

func unzip(t *testing.T, from, to string) {
	t.Helper()
	z, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = writeFile(filepath.Join(to, f.Name), text)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(to, f.Name), f.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The MCP registry finds the name that it is given in the packages, and the bundles with their digests.
func TestServerJSON(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(made(t), "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Name, Version, Description string
		Packages                   []struct {
			Type       string `json:"registryType"`
			Identifier string
			Version    string
			Sum        string `json:"fileSha256"`
		}
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Name != registryName || s.Version != isVersion(t) || len(s.Description) > 100 {
		t.Fatalf("%v: %s", err, text)
	}
	kinds := map[string]int{}
	for _, p := range s.Packages {
		kinds[p.Type]++
		if p.Type == "mcpb" {
			listed(t, p.Identifier, p.Sum)
		}
	}
	if want := map[string]int{"npm": 1, "pypi": 1, "mcpb": strings.Count(targetsMade(t), ",") + 1}; !cmp.Equal(kinds, want) {
		t.Errorf("packages of %v, want %v", kinds, want)
	}
	p := newPlace(t)
	p.run("/usr/bin/tar", "-xzf", filepath.Join(made(t), "npm", "outlive-mcp-"+isVersion(t)+".tgz"), "--strip-components=1")
	if text, err := os.ReadFile(filepath.Join(p.dir, "package.json")); err != nil || !strings.Contains(string(text), `"mcpName": "`+registryName+`"`) {
		t.Errorf("%v: %s", err, text)
	}
	wheel, err := zip.OpenReader(one(t, "pypi/*manylinux*_RPM.musllinux*.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer wheel.Close()
	i := slices.IndexFunc(wheel.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/METADATA") })
	r, err := wheel.File[i].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || !strings.Contains(string(text), "mcp-name: "+registryName+" ") {
		t.Errorf("%v: %s", err, text)
	}
}

// The Containerfile in the archive for Linux copies what is beside it there, and what it makes runs without root's rights. No test
// builds it: that wants an image of Node's.
func TestContainerfile(t *testing.T) {
	p := newPlace(t)
	p.run("/usr/bin/tar", "-xzf", one(t, "outlive_*_linux_ARCH.tar.gz"), "--strip-components=1")
	text, err := os.ReadFile(filepath.Join(p.dir, "container", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // of each instruction
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#":
			continue
		case "COPY":
			words := strings.Fields(rest)
			for _, name := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join(p.dir, name)); err != nil {
					t.Error(err)
				}
			}
		case "FROM", "RUN", "USER", "WORKDIR", "ENTRYPOINT":
		default:
			t.Errorf("the instruction %s is none that is known here", word)
		}
		last[word] = rest
	}
	if last["USER"] == "" || last["USER"] == "root" || last["ENTRYPOINT"] != `["/usr/local/bin/outlive"]` || last["FROM"] == "" {
		t.Errorf("%v", last)
	}
}
