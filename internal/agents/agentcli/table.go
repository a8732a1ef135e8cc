package agentcli

import "time"

// The CLIs that are known. Their names are those of the programs.
const (
	Claude   Kind = "claude"
	Codex    Kind = "codex"
	Gemini   Kind = "gemini"
	OpenCode Kind = "opencode"
	Qwen     Kind = "qwen"
	Copilot  Kind = "copilot"
	Aider    Kind = "aider"
)

// table has everything that the program knows about each agent CLI, except how its files are read: TestOneTableOfCLIs
// (internal/testing/house/clinames_test.go) checks that. The events of hooks are those that show what an agent waits for or how a turn ended. Those of every
// tool call are left out: transcripts show the calls already, and each event costs a process.
var table = []CLI{
	{
		Kind: Claude, Title: "Claude Code",
		program: program{
			names: []string{"claude"}, packages: []string{"@anthropic-ai/claude-code"}, paths: []string{"/@anthropic-ai/claude-code/", "/claude/versions/"}, versioned: true,
			other:         []string{"mcp", "config", "doctor", "update", "upgrade", "install", "setup-token", "plugin", "plugins", "migrate-installer", "agents", "daemon", "auth", "auto-mode", "logs", "attach", "stop", "kill", "rm", "respawn", "purge", "import", "gateway", "ultrareview"},
			takes:         []string{"--model", "--settings", "--session-id", "--mcp-config", "--permission-mode", "--output-format", "--input-format", "--append-system-prompt", "--system-prompt", "--max-turns", "--fallback-model", "--agent", "--agents", "--setting-sources", "--debug-file", "--name", "-n", "--max-budget-usd", "--effort"},
			flags:         []string{"--version", "-v", "--help", "-h", "--claude-in-chrome-mcp", "--chrome-native-host", "--bg", "--background", "--bg-spare", "--bg-pty-host", "--daemon-worker", "--ripgrep"},
			headlessFlags: []string{"-p", "--print"}, streamOption: "--input-format",
			once: []string{"--session-id"}, // measured: 2.1.332 exits with "is already in use"
		},
		Place: Place{Variables: []string{"CLAUDE_CONFIG_DIR"}, Folder: ".claude"}, files: newClaudeFiles,
		TellsStatus: true, EndsOnSIGINT: true, // measured: 2.1.330 exits with status 0
		ownLimit: claudeLimit,
		Resume:   "claude -p --resume {session} {preamble}",
		// With it the CLI keeps retrying an overloaded model (529) and a rate limit (429); without it it gives up
		// after ten retries and ends the turn (measured: 2.1.330).
		Patience: Patience{Variable: "CLAUDE_CODE_RETRY_WATCHDOG", Value: "1", Unless: "CLAUDE_CODE_MAX_RETRIES"},
		// With the socket and its token a child can send messages to the session (measured: 2.1.330).
		SessionVariables: []string{"CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
			"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"},
		Signs: Signs{Busy: "◐◓◑◒", Idle: "✳", Spins: true}, // "✳" also while it waits; Braille before 2.1
		Hooks: &Hooks{
			Unit: time.Second, Off: []string{"disableAllHooks"}, OffValue: "true", File: "settings.json", Local: "settings.local.json",
			Events: []Since{
				{"SessionStart", Version{1, 0, 62}}, {"UserPromptSubmit", Version{1, 0, 54}}, {PermissionRequest, Version{2, 0, 45}},
				{"Notification", Version{1, 0, 38}}, {"Stop", Version{1, 0, 38}}, {"StopFailure", Version{2, 1, 78}},
				{"SessionEnd", Version{1, 0, 85}},
			},
			ReadOnly: []string{"Glob", "Grep", "LS", "NotebookRead", "Read"},
		},
	},
	{
		Kind: Codex, Title: "Codex",
		program: program{
			names: []string{"codex"}, packages: []string{"@openai/codex"}, paths: []string{"/@openai/codex", "/codex-cli/"},
			other:         []string{"mcp", "mcp-server", "app-server", "exec-server", "login", "logout", "completion", "debug", "sandbox", "apply", "a", "cloud", "responses-api-proxy", "stdio-to-uds", "features", "execpolicy", "queue", "migrate-rollouts", "migrate-nfs-db", "archive", "unarchive", "delete", "doctor", "help", "agents", "update", "plugin", "app", "remote-control"},
			takes:         []string{"-c", "--config", "-m", "--model", "-p", "--profile", "-s", "--sandbox", "-a", "--ask-for-approval", "-C", "--cd", "--add-dir", "-i", "--image", "--enable", "--disable", "--local-provider"},
			flags:         []string{"--version", "-V", "--help", "-h"},
			headlessWords: []string{"exec", "e", "review"},
			goOn:          []string{"resume", "fork"},
		},
		Place: Place{Variables: []string{"CODEX_HOME"}, Folder: ".codex"}, files: newCodexFiles,
		SilentUntilPrompted: true, EndsOnSIGINT: true, // recorded and measured: SIGINT ends 0.169.0
		Resume:   "codex exec resume {session} {preamble}",
		Patience: Patience{Command: patientCodex},
		Signs:    Signs{Spins: true, Alerts: []string{"[ ! ] Action Required", "[ . ] Action Required"}}, // it blinks
		Hooks: &Hooks{ // on by default since 0.124.0
			Unit: time.Second, File: "hooks.json",
			Events: []Since{
				{"SessionStart", Version{0, 124, 0}}, {"UserPromptSubmit", Version{0, 124, 0}},
				{PermissionRequest, Version{0, 124, 0}}, {"Stop", Version{0, 124, 0}},
			},
			Trust: "start codex once and trust the hooks in its dialog, or with /hooks: until then it does not run them",
		},
	},
	{
		Kind: Gemini, Title: "Gemini CLI",
		program: program{
			names: []string{"gemini"}, packages: []string{"@google/gemini-cli"}, paths: []string{"/@google/gemini-cli/", "/gemini-cli/bundle/"},
			other:         []string{"mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"},
			takes:         []string{"-m", "--model", "--approval-mode", "--output-format", "-o", "--include-directories", "--resume", "-r", "--session-file", "--session-id", "-w", "--worktree", "--policy", "--admin-policy", "--allowed-mcp-server-names", "--allowed-tools", "-e", "--extensions"},
			flags:         []string{"--version", "-v", "--help", "-h", "--list-sessions", "--list-extensions", "-l", "--delete-session", "--acp", "--experimental-acp"},
			headlessFlags: []string{"-p", "--prompt"}, piped: true,
			once: []string{"--session-id"}, // it exits with 42 if there is such a session
		},
		// Its exits, options and variables are held against the source of 0.56.
		Place: Place{BaseVariable: "GEMINI_CLI_HOME", Folder: ".gemini"}, files: newGeminiFiles, told: geminiTold,
		EndsOnSIGINT: true, // with status 0; the process above it, with the same arguments, ignores SIGINT and SIGTERM
		// No login, bad input, no sandbox, bad settings, a full disk, a folder that is not trusted; 130: cancelled by a person.
		ErrorExits: []int{41, 42, 44, 52, 54, 55, 130},
		LimitExits: []int{53}, // its limit of turns
		Resume:     "gemini --resume {session} -p {preamble}",
		Signs:      Signs{Busy: "✦⏲", Idle: "◇", Waiting: "✋", Quiet: true}, // measured: after 30 s
		Hooks: &Hooks{ // on by default since 0.26.0; its notification reports a permission request but cannot grant it
			PowerShell: true,
			Unit:       time.Millisecond, Off: []string{"hooksConfig", "enabled"}, OffValue: "false", File: "settings.json",
			Events: []Since{
				{"SessionStart", Version{0, 26, 0}}, {"BeforeAgent", Version{0, 26, 0}}, {"Notification", Version{0, 26, 0}},
				{"AfterAgent", Version{0, 26, 0}}, {"SessionEnd", Version{0, 26, 0}},
			},
		},
	},
	{
		Kind: OpenCode, Title: "OpenCode",
		program: program{
			// Those of 1 and 2: a release has its binary as .opencode beside its script, and 2 is opencode2 beside 1.
			names: []string{"opencode", ".opencode", "opencode2"}, packages: []string{"opencode-ai", "@opencode/cli", "@opencode-ai/cli"},
			paths:         []string{"/opencode-ai/", "/opencode-linux-", "/opencode-darwin-", "/opencode-windows-", "/.opencode/bin/", "/@opencode/cli/", "/@opencode-ai/cli/"},
			other:         []string{"serve", "web", "acp", "attach", "auth", "console", "providers", "agent", "upgrade", "update", "uninstall", "models", "stats", "export", "import", "github", "pr", "session", "db", "mcp", "debug", "completion", "plugin", "plug", "generate", "api", "service", "reload", "pair"},
			takes:         []string{"-m", "--model", "--agent", "--prompt", "-s", "--session", "--port", "--hostname", "--mdns-domain", "--cors", "--log-level", "--replay-limit", "--server", "--command", "--format", "-f", "--file", "--title", "--attach", "-p", "--password", "-u", "--username", "--dir", "--variant"},
			flags:         []string{"--version", "-v", "--help", "-h"},
			headlessWords: []string{"run"}, promptOptions: []string{"--prompt"}, // its word is a directory
		},
		Place: Place{Base: ".local/share", BaseVariable: "XDG_DATA_HOME", Folder: "opencode", FileVariable: "OPENCODE_DB"}, files: newOpenCodeFiles,
		SilentUntilPrompted: true,
		Shell:               "bash",
		Resume:              "opencode run --session {session} {preamble}",
	},
	{
		Kind: Qwen, Title: "Qwen Code",
		program: program{
			names: []string{"qwen"}, packages: []string{"@qwen-code/qwen-code"}, paths: []string{"/@qwen-code/qwen-code/"},
			other:         []string{"mcp", "extensions", "hooks", "auth", "channel"},
			takes:         []string{"-m", "--model", "--approval-mode", "--output-format", "-o", "--input-format", "--include-directories", "--add-dir", "--resume", "-r", "--session-id", "--system-prompt", "--append-system-prompt", "--max-session-turns", "--auth-type", "--mcp-config"},
			flags:         []string{"--version", "-v", "--help", "-h", "--list-extensions", "-l", "--acp", "--experimental-acp"},
			headlessFlags: []string{"-p", "--prompt"}, streamOption: "--input-format",
		},
		Place: Place{Variables: []string{"QWEN_RUNTIME_DIR", "QWEN_HOME"}, Folder: ".qwen"}, files: newQwenFiles,
		SilentUntilPrompted: true, Shell: "run_shell_command", EndsOnSIGINT: true, // measured: it ends 0.15.10
		LimitExits: []int{53}, // its limit of turns (measured)
		Resume:     "qwen --resume {session} -p {preamble}",
	},
	{Kind: Copilot, Title: "GitHub Copilot CLI"},
	{Kind: Aider, Title: "Aider"},
}
