package mockmodel

// Mode is what the model behind the server does.
type Mode string

// The modes. Each brings an agent CLI into one state that a monitor must tell from the others.
const (
	Answer     Mode = "answer"     // says something and ends its turn
	Ask        Mode = "ask"        // ends its turn with a question in plain text
	Tool       Mode = "tool"       // runs Script.Command, which the agent's settings allow, then answers
	Background Mode = "background" // runs Script.Command in the background, where the CLI can, then answers
	Permission Mode = "permission" // runs Script.Forbidden, for which the agent must ask a human, then answers
	Question   Mode = "question"   // asks the user through the CLI's own question tool, then answers
	Loop       Mode = "loop"       // runs Script.Command again and again, Script.Rounds times, then answers
	Hang       Mode = "hang"       // takes the request and never answers
	Stall      Mode = "stall"      // begins its answer and stops in the middle of it
	RateLimit  Mode = "429"        // refuses: too many requests
	Overload   Mode = "529"        // refuses: overloaded (OpenAI and Gemini: 503)
	Auth       Mode = "401"        // refuses: the key is not valid (Gemini: 400)
	Context    Mode = "context"    // refuses: the prompt is longer than the context window
	Credit     Mode = "credit"     // refuses: the account has nothing left to pay with
	Invalid    Mode = "400"        // refuses: it cannot do anything with such a request
	Use        Mode = "use"        // calls Script.Tool once where there is one, or runs Script.Command, then answers
	Cut        Mode = "cut"        // begins its answer, and the connection breaks in the middle of it
	Refuse     Mode = "refuse"     // refuses as Script.Refusal says
	Told       Mode = "told"       // does what the test says next: see Server.Call and Server.Say
)

// Modes are all modes, in the order of their constants.
func Modes() []Mode {
	return []Mode{Answer, Ask, Tool, Background, Permission, Question, Loop, Hang, Stall, RateLimit, Overload, Auth, Context, Credit, Invalid, Use,
		Cut, Refuse, Told}
}

// Script is what the modes say and run. A field left empty has the default named with it.
type Script struct {
	Text      string // the answer. "Done: the shop's tests pass."
	Ask       string // the question of Ask and Question. "Which database should the shop use?"
	Command   string // of Tool and Loop. "sleep 1"
	Forbidden string // of Permission. "touch approved.txt"
	Rounds    int    // of Loop. 8

	Tool    string         // of Use. "": none
	Input   map[string]any // its arguments
	Refusal Refusal        // of Refuse
	Prompts []string       // of Told: of several agents that have one model, as Call.Prompt names them
}

// Refusal is an HTTP answer that is an error.
type Refusal struct {
	Status int
	Header map[string]string
	Body   map[string]any
}

func (s Script) withDefaults() Script {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&s.Text, "Done: the shop's tests pass.")
	fill(&s.Ask, "Which database should the shop use?")
	fill(&s.Command, "sleep 1")
	fill(&s.Forbidden, "touch approved.txt")
	if s.Rounds == 0 {
		s.Rounds = 8
	}
	return s
}

// move is what the model does with one request.
type move uint8

const (
	say       move = iota // text, end of turn
	run                   // a shell command
	runGuard              // a shell command that needs approval
	runBehind             // a shell command that the CLI leaves running while the turn goes on
	askUser               // the CLI's question tool
	silence               // nothing, ever
	halfway               // the beginning of an answer, then nothing
	broken                // the beginning of an answer, then the end of the connection
	useTool               // Script.Tool
	refuse                // an HTTP error
	await                 // what the test says next
	smallTalk             // a side call of the CLI (a title, a summary): text that means nothing
)

// turn is what a request tells about where the conversation stands.
type turn struct {
	side    bool // not the agent's own turn: the CLI wants a title or a summary
	results int  // tool results since the user last spoke
}

// decide is the whole script: which move a mode makes at a turn, and what it says or runs.
func (s Script) decide(mode Mode, at turn) (move, string) {
	switch mode {
	case RateLimit, Overload, Auth, Context, Credit, Invalid, Refuse:
		return refuse, ""
	}
	if at.side {
		return smallTalk, `{"title": "Check the shop"}`
	}
	switch {
	case mode == Hang:
		return silence, ""
	case mode == Told:
		return await, ""
	case mode == Stall:
		return halfway, s.Text
	case mode == Cut:
		return broken, s.Text
	case mode == Use:
		return useTool, s.Command
	case mode == Ask:
		return say, s.Ask
	case mode == Tool && at.results == 0, mode == Loop && at.results < s.Rounds:
		return run, s.Command
	case mode == Background && at.results == 0:
		return runBehind, s.Command
	case mode == Permission && at.results == 0:
		return runGuard, s.Forbidden
	case mode == Question && at.results == 0:
		return askUser, s.Ask
	}
	return say, s.Text
}
