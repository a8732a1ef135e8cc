package hooks

import "github.com/outlive-mcp/outlive/internal/pattern"

// redacted stands where a secret was.
const redacted = "[redacted]"

// secrets are things that are secret by their looks; the groups around them stay. Names and forms are those that the services
// document: AWS, GitHub, GitLab, Slack, Google, OpenAI and Anthropic, Stripe, npm, PyPI, Telegram, JWT, PEM.
var secrets = []*pattern.Pattern{
	pattern.New(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	pattern.New(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[^\s"'\\]+`),
	pattern.New(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}`),
	pattern.New(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"']*:)[^\s/@"']+(@)`),
	pattern.New(`(?i)(\b[\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["']?\s*[:=]\s*)(?:"[^"]+"|'[^']+'|[^\s"'&;,|)}]+)`),
	pattern.New(`(?i)(--?(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?token|client[_-]?secret)\s+)(?:"[^"]+"|'[^']+'|[^\s"'-][^\s"']*)`),
	pattern.New(`()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
	pattern.New(`()\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})`),
	pattern.New(`()\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),
	pattern.New(`()\bAIza[A-Za-z0-9_-]{30,}`),
	pattern.New(`()\b(?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}`),
	pattern.New(`()\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})`),
	pattern.New(`()\b\d{6,12}:[A-Za-z0-9_-]{30,}`),
	pattern.New(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
}

// Redact takes what is secret by its looks out of a text. It cannot know all secrets: a password that looks like any
// other word stays.
func Redact(s string) string {
	for _, p := range secrets {
		s = p.ReplaceAllString(s, "${1}"+redacted+"${2}")
	}
	return s
}
