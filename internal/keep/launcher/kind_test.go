package launcher

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func TestIs(t *testing.T) {
	for _, tc := range []struct {
		argv []string
		want Kind
		ok   bool
	}{
		{[]string{"npx", "-y", "@modelcontextprotocol/server-everything"}, Npx, true},
		{[]string{"/usr/local/bin/npx", "pkg"}, Npx, true},
		{[]string{`C:\Program Files\nodejs\npx.cmd`, "pkg"}, Npx, true},
		{[]string{"cmd", "/c", "npx", "-y", "pkg"}, Npx, true},
		{[]string{"node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "pkg"}, Npx, true},
		{[]string{"env", "A=b", "C=d", "npx", "pkg"}, Npx, true},
		{[]string{"sh", "-c", "exec npx -y 'pkg'"}, Npx, true},
		{[]string{"bash", "-c", "exec env A=b npx -y pkg"}, Npx, true},
		{[]string{"npm", "exec", "--", "pkg"}, NpmExec, true},
		{[]string{"npm", "--prefix", "dir", "-s", "x", "pkg"}, NpmExec, true},
		{[]string{"uvx", "mcp-server-time"}, Uvx, true},
		{[]string{"/opt/uv", "tool", "uvx", "mcp-server-time"}, Uvx, true},
		{[]string{"uv", "tool", "run", "x"}, UvToolRun, true},
		{[]string{"uv", "--directory", "/srv", "run", "server.py"}, UvRun, true},
		{[]string{"uv", "--directory=/srv", "run", "server.py"}, UvRun, true},
		{[]string{"python3.12", "-m", "uv", "run", "server.py"}, UvRun, true},
		{[]string{"pipx", "run", "x"}, PipxRun, true},
		{[]string{"python3", "-m", "pipx", "run", "x"}, PipxRun, true},
		{[]string{"pnpm", "dlx", "x"}, PnpmDlx, true},
		{[]string{"corepack", "pnpm", "dlx", "x"}, PnpmDlx, true},
		{[]string{"pnpx", "x"}, PnpmDlx, true},
		{[]string{"bunx", "x"}, Bunx, true},
		{[]string{"bunx.exe", "x"}, Bunx, true},
		{[]string{"bun", "x", "y"}, Bunx, true},
		{[]string{"yarn", "dlx", "x"}, YarnDlx, true},

		{nil, "", false},
		{[]string{""}, "", false},
		{[]string{"node", "server.js"}, "", false},
		{[]string{"node", "--inspect", "npx"}, "", false},
		{[]string{"python", "-m", "mcp_server_time"}, "", false},
		{[]string{"npm", "run", "start"}, "", false},
		{[]string{"npm", "install", "exec"}, "", false},
		{[]string{"uv", "pip", "run"}, "", false},
		{[]string{"uv"}, "", false},
		{[]string{"bun", "run", "x"}, "", false},
		{[]string{"env", "-i", "npx", "pkg"}, "", false},
		{[]string{"sh", "-c", "npx -y pkg"}, "", false}, // a shell that stays
		{[]string{"sh", "-c", "exec npx -y pkg; true"}, "", false},
		{[]string{"sh", "-c", "cd /srv && exec npx -y pkg"}, "", false},
		{[]string{"sh", "-c", "exec npx -y $PKG"}, "", false},
		{[]string{"npx", "-c", "a | b"}, Npx, false},
		{[]string{"npx", "--call=a | b"}, Npx, false},
		{[]string{"uv", "run", "--env-file", ".env", "server.py"}, UvRun, false},
	} {
		t.Run(strings.Join(tc.argv, " "), func(t *testing.T) {
			if got, ok := Is(tc.argv); got != tc.want || ok != tc.ok {
				t.Errorf("got %q, %v, want %q, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestVersionAsked(t *testing.T) {
	for _, tc := range []struct {
		line string
		want Version
	}{
		{"npx -y pkg", Latest},
		{"npx -y pkg --port 1@latest", Latest}, // the server's own words
		{"npx -y @scope/pkg", Latest},
		{"npx -y pkg@latest", Moving},
		{"npx -y @scope/pkg@latest", Moving},
		{"npx -y pkg@next", Moving},
		{"npx -y pkg@1.2.3", Pinned},
		{"npx -y @scope/pkg@1.2.3-beta.1", Pinned},
		{"npx -y pkg@1", Latest},
		{"npx -y pkg@^1.2", Latest},
		{"npx -y -p pkg@1.2.3 bin@latest", Pinned},
		{"npx --package=pkg@latest bin", Moving},
		{"npx -p a@1.2.3 -p b bin", Latest},
		{"npx --registry https://registry.example pkg@1.2.3", Pinned},
		{"npx --prefer-online pkg@1.2.3", Moving},
		{"npx github:user/repo", Moving},
		{"npx user/repo", Moving},
		{"npx ./folder", Moving},
		{"npx https://example.com/x.tgz", Moving},
		{"npm exec -- pkg@latest", Moving},
		{"npm exec --yes pkg@1.0.0 -- --flag", Pinned},
		{"pnpm dlx pkg@1.0.0", Pinned},
		{"bunx pkg@latest", Moving},
		{"yarn dlx -p pkg@1.0.0 bin", Pinned},
		{"uvx pkg", Latest},
		{"uvx pkg@latest", Moving},
		{"uvx pkg@1.2", Pinned},
		{"uvx pkg==1.2.3", Pinned},
		{"uvx pkg==1.*", Latest},
		{"uvx pkg[extra]==1.2.3", Pinned},
		{"uvx --from pkg>=1 bin", Latest},
		{"uvx --from pkg==1.0 bin@latest", Pinned},
		{"uvx --from git+https://example.com/x bin", Moving},
		{"uvx --from . bin", Moving},
		{"uvx --with other pkg==1.0", Latest},
		{"uvx --python 3.12 pkg==1.0", Pinned},
		{"uvx -p 3.12 pkg==1.0", Pinned},
		{"uvx --refresh pkg==1.0", Moving},
		{"uvx -U pkg", Moving},
		{"uv -n tool run pkg==1.0", Moving},
		{"uv run server.py", Pinned},
		{"uv --directory /srv run server.py", Pinned},
		{"uv run -m server", Pinned},
		{"uv run --package member server", Pinned},
		{"uv run --with mcp server.py", Latest},
		{"uv run --upgrade server.py", Moving},
		{"uv run https://example.com/server.py", Moving},
		{"uv run -", Moving},
		{"pipx run pkg", Latest},
		{"pipx run pkg==1.0", Pinned},
		{"pipx run --spec git+https://example.com/x bin", Moving},
		{"pipx run --no-cache pkg==1.0", Moving},
	} {
		t.Run(tc.line, func(t *testing.T) {
			if got := parse(strings.Fields(tc.line)).version; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSplitSimple(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   []string
		ok     bool
	}{
		{"exec npx -y pkg", []string{"exec", "npx", "-y", "pkg"}, true},
		{`'mcp-server' 'a b' "c \"d\"" e\ f ''`, []string{"mcp-server", "a b", `c "d"`, "e f", ""}, true},
		{`'it'\''s'`, []string{"it's"}, true},
		{"", nil, true},
		{"a; b", nil, false},
		{"a\nb", nil, false},
		{"a > b", nil, false},
		{`"$x"`, nil, false},
		{"a 'b", nil, false},
		{`a "b`, nil, false},
		{`a \`, nil, false},
		{"a *.js", nil, false},
	} {
		got, ok := splitSimple(tc.script)
		if !ok {
			got = nil
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
			t.Errorf("%q: ok %v, want %v (-want +got):\n%s", tc.script, ok, tc.ok, diff)
		}
	}
}

// What npm quotes for its shell is read back as it was.
func TestSplitSimpleReadsQuotedWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		got, ok := splitSimple(strings.Join(quoted, " "))
		if diff := cmp.Diff(words, got); diff != "" || !ok {
			t.Errorf("ok %v (-want +got):\n%s", ok, diff)
		}
	})
}

func FuzzIs(f *testing.F) {
	f.Add("npx\x00-y\x00pkg@latest")
	f.Add("sh\x00-c\x00exec env A='b' uvx --from x y")
	f.Add("uv\x00--directory\x00=\x00run\x00-m")
	f.Add("env\x00A=\x00")
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x00")
		kind, ok := Is(argv)
		if ok && kind == "" {
			t.Errorf("%q is a launcher without a name", argv)
		}
		if o := parse(argv); o.kind != "" && o.version != Pinned && o.version != Latest && o.version != Moving {
			t.Errorf("%q has version %q", argv, o.version)
		}
	})
}
