package hooks

import (
	"regexp"
	"sync"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// secrets are things that are secret by their looks; the groups around them stay. Names and forms are those that the services
// document: AWS, GitHub, GitLab, Slack, Google, OpenAI and Anthropic, Stripe, npm, PyPI, Telegram, JWT, PEM.
var secrets = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)[^\s"'\\]+`),
		regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}`),
		regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"']*:)[^\s/@"']+(@)`),
		regexp.MustCompile(`(?i)(\b[\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["']?\s*[:=]\s*)(?:"[^"]+"|'[^']+'|[^\s"'&;,|)}]+)`),
		regexp.MustCompile(`(?i)(--?(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?token|client[_-]?secret)\s+)(?:"[^"]+"|'[^']+'|[^\s"'-][^\s"']*)`),
		regexp.MustCompile(`()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
		regexp.MustCompile(`()\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})`),
		regexp.MustCompile(`()\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),
		regexp.MustCompile(`()\bAIza[A-Za-z0-9_-]{30,}`),
		regexp.MustCompile(`()\b(?:sk|rk|pk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}`),
		regexp.MustCompile(`()\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})`),
		regexp.MustCompile(`()\b\d{6,12}:[A-Za-z0-9_-]{30,}`),
		regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	}
})

// Redact takes what is secret by its looks out of a text. It cannot know all secrets: a password that looks like any
// other word stays.
func Redact(s string) string {
	for _, re := range secrets() {
		s = re.ReplaceAllString(s, "${1}"+redacted+"${2}")
	}
	return s
}
