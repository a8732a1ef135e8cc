package judge

import (
	"cmp"
	"slices"
	"time"
)

// Kind is what a case is about.
type Kind string

// The kinds.
const (
	Silent   Kind = "silent"   // a machine
	Machines Kind = "machines" // several that fell silent at the same time: most likely for one cause
	Shared   Kind = "shared"   // a cause that machines share
)

// groupFrom is how many machines that fall silent at the same time are one case.
const groupFrom = 3

// Standing is what asking a silent machine has shown.
type Standing string

// The standings.
const (
	Unasked Standing = ""
	Gone    Standing = "gone"    // its program has ended, since its connection was closed
	CutOff  Standing = "cut off" // its connection fell silent: a partition, or the machine is off or stopped
	Lost    Standing = "lost"    // nobody is there, and which of the two it is cannot be known
	Works   Standing = "works"   // it answers: only its digests are lost
)

// Case is something that people are told of, once. Kind and Subject are its key.
type Case struct {
	Kind    Kind   `json:"-"`
	Subject string `json:"-"` // the machine, the first of several, or the cause
	// Standing is that of silent machines: Gone, CutOff or Lost.
	Standing Standing `json:"standing,omitempty"`
	// Since is the last word of a silent machine, by the clock of the judge that found it.
	Since time.Time `json:"since,omitzero"`
	// Agents are those that share a cause, as "host/agent", or the machines of several, in order.
	Agents []string `json:"agents,omitempty"`
	// Told says that a machine has told of the cause by itself already.
	Told bool `json:"-"`
}

// host is what is known of one machine.
type host struct {
	digest  Digest
	changed time.Time // when it was noticed, by the monotonic clock
	lives   bool      // a digest has come since we look: the first one may be old
	asked   Standing
}

// view is what a judge sees. It is pure: time is an argument.
type view map[string]*host

func (v view) see(name string, d Digest, now time.Time) {
	if h := v[name]; h == nil || h.digest.Incarnation != d.Incarnation || h.digest.Beat != d.Beat {
		v[name] = &host{digest: d, changed: now, lives: h != nil}
	}
}

// reach is the best one of the machines that live, but for the judge's own. That machine's digest is older than what the judge knows of it.
func (v view) reach(own string, silence time.Duration, now time.Time) (best Reach) {
	for name, h := range v {
		if name != own && h.lives && !h.digest.Left && now.Sub(h.changed) < silence {
			best = max(best, h.digest.Reach)
		}
	}
	return best
}

// suspects are the machines that are to be asked, because they are silent.
func (v view) suspects(silence time.Duration, now time.Time) []string {
	var names []string
	for name, h := range v {
		if !h.digest.Left && now.Sub(h.changed) >= silence {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cases are what people have to know, in order. A machine that is silent still has the troubles it had. open are the cases that are known
// already. A machine that falls silent waits for a beat for others that do so, too.
func (v view) cases(silence, beat time.Duration, open []Record, now time.Time) []Case {
	list := append(v.silentCases(silence, beat, open, now), v.sharedCases()...)
	slices.SortFunc(list, func(a, b Case) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

func (v view) silentCases(silence, beat time.Duration, open []Record, now time.Time) (list []Case) {
	belongs := map[string]Record{} // the open case of a machine
	for _, n := range open {
		switch n.Kind {
		case Silent:
			belongs[n.Subject] = n
		case Machines:
			for _, name := range n.Agents {
				belongs[name] = n
			}
		}
	}
	groups, due := map[string]*Case{}, false
	var fresh []string
	for _, name := range v.suspects(silence, now) {
		h := v[name]
		if h.asked == Unasked || h.asked == Works {
			continue
		}
		n, known := belongs[name]
		switch {
		case known && n.Kind == Silent:
			list = append(list, v.one(name))
		case known:
			v.join(groups, n.Subject, name)
		default:
			fresh, due = append(fresh, name), due || now.Sub(h.changed) >= silence+beat
		}
	}
	for _, name := range fresh {
		switch {
		case !due:
		case len(fresh) < groupFrom:
			list = append(list, v.one(name))
		default:
			v.join(groups, fresh[0], name)
		}
	}
	for _, c := range groups {
		list = append(list, *c)
	}
	return list
}

// one is the case of one silent machine.
func (v view) one(name string) Case {
	return Case{Kind: Silent, Subject: name, Standing: v[name].asked, Since: v[name].changed.UTC().Round(time.Second)}
}

// join adds a silent machine to the case of several.
func (v view) join(groups map[string]*Case, subject, name string) {
	one := v.one(name)
	c := groups[subject]
	if c == nil {
		c = &Case{Kind: Machines, Subject: subject, Standing: one.Standing, Since: one.Since}
		groups[subject] = c
	}
	if c.Standing != one.Standing {
		c.Standing = Lost
	}
	if one.Since.Before(c.Since) {
		c.Since = one.Since
	}
	c.Agents = append(c.Agents, name)
}

func (v view) sharedCases() (list []Case) {
	shared := map[string]*Case{}
	for name, h := range v {
		for _, t := range h.digest.Troubles {
			c := shared[t.Cause]
			if c == nil {
				c = &Case{Kind: Shared, Subject: t.Cause}
				shared[t.Cause] = c
			}
			c.Agents = append(c.Agents, name+"/"+t.Agent)
			c.Told = c.Told || t.Told
		}
	}
	for _, c := range shared {
		slices.Sort(c.Agents)
		list = append(list, *c)
	}
	return list
}
