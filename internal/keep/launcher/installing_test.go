package launcher

import (
	"strings"
	"testing"
)

func TestInstalls(t *testing.T) {
	for argv, want := range map[string]string{
		"npx -y pkg": "npx", "/usr/bin/npx pkg": "npx", "NPX.CMD pkg": "npx", "uvx pkg": "uvx", "bunx pkg": "bunx", "pnpx pkg": "pnpx",
		"npm exec pkg": "npm", "npm x pkg": "npm", "npm start": "", "npm": "", "pnpm dlx pkg": "pnpm", "pnpm start": "", "yarn dlx pkg": "yarn",
		"bun x pkg": "bun", "bun server.ts": "", "uv run server.py": "uv", "uv tool run pkg": "uv", "uv sync": "", "uv --directory run run server.py": "uv", "uv -q --project=x run a": "uv", "uv --directory run": "",
		"npm --yes exec pkg": "npm", "docker --context x run image": "docker", "docker --context run ps": "", "pipx run pkg": "pipx",
		"docker run -i image": "docker", "docker exec -i box server": "", "podman run image": "podman", "node npx": "", "": "",
		"cmd /c npx -y pkg": "npx", "cmd.exe /d /C npx.cmd pkg": "npx", "cmd /c server.exe": "", "cmd": "", "env A=b npx pkg": "npx", "env /usr/bin/uvx pkg": "uvx",
		"wsl npx pkg": "npx", "sh server.sh": "", "sh -c sh": "",
	} {
		if got := Installs(strings.Fields(argv)); got != want {
			t.Errorf("%q: %q, want %q", argv, got, want)
		}
	}
	if got := Installs([]string{"bash", "-lc", "npx -y pkg --key=a"}); got != "npx" {
		t.Errorf("a shell's text: %q", got)
	}
}

func TestBrokenCache(t *testing.T) {
	for name, c := range map[string]struct{ stderr, want string }{
		"a module is missing": {"Error: Cannot find module 'ajv'\nRequire stack:\n- /home/u/.npm/_npx/5b2dd62b9d0bddd4/node_modules/a/index.js",
			"/home/u/.npm/_npx/5b2dd62b9d0bddd4"},
		"of ESM": {"Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /home/u/.npm/_npx/0a1b/node_modules/x/y.js",
			"/home/u/.npm/_npx/0a1b"},
		"as a URL": {"    at file:///home/u v/.npm/_npx/0a1b/node_modules/x/y.js:1:1\n  code: 'ERR_MODULE_NOT_FOUND'", "/home/u v/.npm/_npx/0a1b"},
		"on Windows": {"Error: Cannot find module 'ajv'\n- C:\\Users\\u\\AppData\\Local\\npm-cache\\_npx\\0a1b\\node_modules\\a\\index.js",
			`C:\Users\u\AppData\Local\npm-cache\_npx\0a1b`},
		"as a URL of Windows": {"    at file:///C:/Users/u/npm-cache/_npx/0a1b/node_modules/x/y.js:1:1\n  code: 'ERR_MODULE_NOT_FOUND'",
			"C:/Users/u/npm-cache/_npx/0a1b"},
		"npm cannot replace it": {"npm error code ENOTEMPTY\nnpm error syscall rename\nnpm error path /home/u/.npm/_npx/0a1b/node_modules/ajv\n" +
			"npm error ENOTEMPTY: directory not empty, rename '/home/u/.npm/_npx/0a1b/node_modules/ajv' -> '/x'", "/home/u/.npm/_npx/0a1b"},
		"a server elsewhere": {"Error: Cannot find module 'ajv'\n- /srv/app/index.js", ""},
		"another failure":    {"TypeError: x is undefined\n    at /home/u/.npm/_npx/0a1b/node_modules/x/y.js:1:1", ""},
		"nothing":            {"", ""},
	} {
		if got := BrokenCache(strings.Split(c.stderr, "\n")); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
