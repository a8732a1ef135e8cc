package agentcli

import (
	"strings"
	"testing"
)

func TestRecognise(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args string // separated by spaces
		want Kind   // "": none
	}{
		{"claude", Claude},
		{"/usr/local/bin/claude --resume abc -p go", Claude},
		{"claude -p mcp-servers are broken, fix them", Claude},
		{"claude --dangerously-skip-permissions --mcp-config mcp.json", Claude},
		{"claude --model opus fix it", Claude},
		{`C:\Users\u\AppData\Roaming\npm\claude.cmd`, Claude},
		{"node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js --continue", Claude},
		{"node --max-old-space-size=8192 /home/u/.nvm/lib/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs", Claude},
		{"/home/u/.local/share/claude/versions/2.1.330 --resume x", Claude},
		{"/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", Claude},
		{"npx @anthropic-ai/claude-code -p go", Claude},
		{"npx -y @anthropic-ai/claude-code@2.1.330", Claude},
		{"npm exec @anthropic-ai/claude-code -- -p go", Claude},
		{"bunx claude", Claude},
		{"bun /x/node_modules/@anthropic-ai/claude-code/cli.js", Claude},
		{"bun x @anthropic-ai/claude-code", Claude},
		{"codex", Codex},
		{"codex exec --json fix it", Codex},
		{"codex -c model=gpt-6 --cd /home/u/shop resume --last", Codex},
		{"node /usr/bin/codex", Codex},
		{"node /usr/lib/node_modules/@openai/codex/bin/codex.js exec go", Codex},
		{"/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex exec go", Codex},
		{"npx --package=@openai/codex codex exec go", Codex},
		{"npx -p @openai/codex codex", Codex},
		{"node --no-warnings=DEP0040 /usr/bin/gemini -p go", Gemini},
		{"npx @google/gemini-cli", Gemini},
		{"node /usr/lib/node_modules/@google/gemini-cli/dist/index.js", Gemini},
		{"/usr/bin/node --max-old-space-size=8192 /usr/bin/gemini -p go", Gemini}, // below the same without the option
		{"gemini -w mcp -i fix", Gemini},
		{"gemini --policy mcp --allowed-tools hooks,mcp -e skills fix it", Gemini},
		{"opencode run fix it", OpenCode},
		{"node ../node_modules/.bin/qwen -p go", Qwen}, // seen of 0.15.10, and the same again below it
		{"/usr/bin/node /usr/lib/node_modules/@qwen-code/qwen-code/cli.js --resume 1234", Qwen},
		{"npx @qwen-code/qwen-code@latest", Qwen},
		{"/home/u/.opencode/bin/opencode", OpenCode},
		{"node /usr/lib/node_modules/opencode-ai/bin/opencode", OpenCode},
		{"/usr/lib/node_modules/opencode-ai/bin/.opencode run go", OpenCode},
		{"opencode ./shop", OpenCode},
		{"opencode --log-level DEBUG --format json run serve it", OpenCode},
		{"npx @opencode/cli@2 run go", OpenCode},
		{"node /usr/lib/node_modules/@opencode/cli/bin/opencode.cjs --standalone run go", OpenCode},
		{"/usr/lib/node_modules/@opencode/cli-linux-x64/bin/opencode", OpenCode},
		{"opencode2 mini", OpenCode},
		{"npx @opencode-ai/cli@next", OpenCode},

		{"", ""},
		{"claude mcp serve", ""},
		{"claude --debug mcp list", ""},
		{"claude doctor", ""},
		{"claude agents --json", ""},
		{"claude --version", ""},
		{"claude --bg fix it", ""},
		{"npx @anthropic-ai/claude-code mcp serve", ""},
		{"node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js mcp serve", ""},
		{"codex app-server --listen unix:// --managed-daemon", ""},
		{"/home/u/.codex/packages/app-server-daemon/releases/0.169.0/bin/codex app-server daemon pid-update-loop", ""},
		{"codex mcp-server", ""},
		{"codex -c a=b mcp", ""},
		{"codex queue abc go on", ""},
		{"codex-linux-sandbox -- sh -c codex", ""},
		{"opencode serve --port 4096", ""},
		{"opencode acp", ""},
		{"opencode attach http://localhost:4096", ""},
		{"opencode --server http://localhost:4096 session list", ""},
		{"opencode console login", ""},
		{"opencode generate", ""},
		{"opencode plug prettier", ""},
		{"opencode service start", ""},
		{"opencode api get /session", ""},
		{"opencode2 serve --service --port 0", ""},
		{"gemini mcp list", ""},
		{"gemini gemma start", ""},
		{"gemini --acp", ""},
		{"gemini -m pro --experimental-acp", ""},
		{"qwen mcp list", ""},
		{"qwen --acp", ""},
		{"outlive hook claude", ""},
		{"outlive agent run shop -- claude", ""},
		{"sh -c claude -p go", ""},
		{"vim claude", ""},
		{"tail -f /home/u/.claude/projects/x/y.jsonl", ""},
		{"node /home/u/claude-code-hooks/index.js", ""},
		{"node -e require('@anthropic-ai/claude-code/cli.js')", ""},
		{"node -r /x/@anthropic-ai/claude-code/cli.js server.js", ""},
		{"npx @modelcontextprotocol/server-filesystem /home/u", ""},
		{"uvx mcp-server-git --repository claude", ""},
		{"python3 /home/u/.claude/hooks/claude.py", ""},
		{"/usr/lib/node_modules/@anthropic-ai/claude-code/vendor/ripgrep/x64-linux/rg --files", ""},
		{"rg claude", ""},
		{"node /srv/codex.js", ""},
		{"bun run build", ""},
		{"npm run claude", ""},
	}
	for _, test := range tests {
		var args []string
		if test.args != "" {
			args = strings.Split(test.args, " ")
		}
		if got, ok := Recognise(args); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, wanted %q", test.args, got, test.want)
		}
	}
}

func TestHeadless(t *testing.T) {
	for command, want := range map[string]bool{
		"claude -p fix":                           true,
		"claude --model opus --print fix":         true,
		"claude --resume 1234 -p go":              true,
		"claude":                                  false,
		"claude fix -p":                           true,
		"claude -- -p":                            false, // a prompt
		"npx -y @anthropic-ai/claude-code -p fix": true,
		"node /x/@anthropic-ai/claude-code/cli.js -p fix": true,
		"codex exec fix": true,
		"codex -m gpt --sandbox read-only exec resume 1 x":             true,
		"codex -c model_providers.mine.stream_max_retries=11 exec fix": true,
		"codex resume":     false,
		"codex":            false,
		"gemini -p fix":    true,
		"gemini":           false,
		"opencode run fix": true,
		"opencode":         false,
		"opencode --variant high --dir web run fix": true,
		"opencode --prompt run":                     false,
		"qwen -p fix":                               true,
		"qwen":                                      false,
		"claude mcp -p":                             false,
		"bash -c claude":                            false,
		"":                                          false,
	} {
		if got := Headless(strings.Fields(command), true); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	for command, want := range map[string]bool{
		"gemini":             true,
		"gemini fix":         true,
		"gemini mcp list":    false,
		"claude":             false,
		"codex":              false,
		"bash -c gemini fix": false,
	} {
		if got := Headless(strings.Fields(command), false); got != want {
			t.Errorf("%q without a terminal: %v", command, got)
		}
	}
}

func TestPrompted(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"claude":                       false,
		"claude --model opus":          false,
		"claude fix":                   true,
		"claude -p fix":                true,
		"codex resume --last":          false,
		"codex resume 1 go on":         true,
		"opencode":                     false,
		"opencode ./shop":              false, // a directory
		"opencode --session 1":         false,
		"opencode ./shop --prompt fix": true,
		"opencode --prompt=fix":        true,
		"opencode run fix":             true,
		"sh -c claude":                 false,
	} {
		if got := Prompted(strings.Fields(command)); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestStreamed(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"claude -p --input-format stream-json --output-format stream-json":    true,
		"claude -p --input-format=stream-json":                                true,
		"node /x/@anthropic-ai/claude-code/cli.js --input-format stream-json": true,
		"qwen --input-format stream-json":                                     true,
		"claude -p --input-format text fix":                                   false,
		"claude -p --output-format stream-json fix":                           false,
		"claude -p -- --input-format stream-json":                             false, // a prompt
		"claude --input-format":                                               false,
		"codex exec --input-format stream-json":                               false, // it has no such option
		"sleep 1":                                                             false,
	} {
		if got := Streamed(strings.Fields(command)); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestOnce(t *testing.T) {
	for command, want := range map[string]string{
		"claude -p --session-id 0f4c fix":                       "--session-id",
		"claude --session-id=0f4c":                              "--session-id",
		"npx -y @anthropic-ai/claude-code --session-id 1 -p go": "--session-id",
		"claude --resume 1 --fork-session --session-id 2":       "--session-id",
		"gemini --session-id 0f4c -p fix":                       "--session-id",
		"gemini --resume {session} -p go":                       "",
		"claude -p --resume {session} go":                       "",
		"claude -p -- --session-id":                             "", // a prompt
		"claude":                                                "",
		"bash -c claude --session-id 1":                         "",
		"mycli --session-id 1":                                  "",
		"":                                                      "",
	} {
		if got := Once(strings.Fields(command)); got != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

func TestUnseen(t *testing.T) {
	for command, want := range map[string]bool{
		"claude --bg fix":                  true,
		"claude --background":              true,
		"claude --model opus --bg fix":     true,
		"claude mcp serve":                 true,
		"codex app-server":                 true,
		"claude":                           false,
		"claude -p fix":                    false,
		"codex exec fix":                   false,
		"npx -y @anthropic-ai/claude-code": false,
		"./nightly.sh --bg":                false,
		"":                                 false,
	} {
		if got := Unseen(strings.Fields(command)); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}
