package bridge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is certain of questions, step by step until nothing more is. A call that has been asked leaves the suspects of the
// other questions here: its tool waits for the answer.
func TestAttribute(t *testing.T) {
	var (
		alice  = suspect{party: party{"alice", `{"name":"c"}`}, can: canForm}
		bob    = suspect{party: party{"bob", `{"name":"c"}`}, can: canForm}
		nobody = suspect{party: party{"", `{"name":"c"}`}, can: canForm}
		silent = suspect{party: party{"alice", ""}, can: canForm}
		deaf   = suspect{party: party{"carol", `{"name":"c"}`}}
		left   = suspect{party: party{"alice", `{"name":"c"}`}, can: canForm, gone: true}
		asking = suspect{party: party{"alice", `{"name":"c"}`}, can: canForm, asked: true}
		ask    = func(of ...int) inquiry { return inquiry{canForm, of} }
		is     = func(question int, v verdict, suspect int) ruling {
			return ruling{question: question, verdict: v, suspect: suspect}
		}
		rulings = func(all ...ruling) []ruling { return all }
	)
	for name, tc := range map[string]struct {
		suspects  []suspect
		questions []inquiry
		want      []ruling
	}{
		"nothing is asked":  {[]suspect{alice, bob}, nil, nil},
		"no call was there": {nil, []inquiry{ask()}, rulings(is(0, noCall, 0))},
		"one call":          {[]suspect{alice}, []inquiry{ask(0)}, rulings(is(0, give, 0))},
		"one call, and two questions at once": {[]suspect{alice}, []inquiry{ask(0), ask(0)},
			rulings(is(0, give, 0), is(0, noCall, 0))},
		"the client cannot be asked":         {[]suspect{deaf}, []inquiry{ask(0)}, rulings(is(0, unable, 0))},
		"the client has left":                {[]suspect{left}, []inquiry{ask(0)}, rulings(is(0, withdrawn, 0))},
		"two calls: the other one may end":   {[]suspect{alice, bob}, []inquiry{ask(0, 1)}, nil},
		"who cannot be asked may have asked": {[]suspect{alice, deaf}, []inquiry{ask(0, 1)}, nil},
		"who has left may have asked":        {[]suspect{left, bob}, []inquiry{ask(0, 1)}, nil},
		"two calls, two questions: the later one is refused, then time will tell": {[]suspect{alice, bob},
			[]inquiry{ask(0, 1), ask(0, 1)}, rulings(is(1, undecided, 0))},
		"without authentication nobody is known to be the same": {[]suspect{nobody, nobody},
			[]inquiry{ask(0, 1), ask(0, 1)}, rulings(is(1, undecided, 0))},
		"nor without a name": {[]suspect{silent, silent}, []inquiry{ask(0, 1), ask(0, 1)}, rulings(is(1, undecided, 0))},
		"one party: in the order of arrival": {[]suspect{alice, alice}, []inquiry{ask(0, 1), ask(0, 1)},
			rulings(is(0, give, 0), is(0, give, 1))},
		"one party: a call that has asked already is asked nothing more": {[]suspect{asking, alice}, []inquiry{ask(0, 1)},
			rulings(is(0, give, 1))},
		"one party: unless there is no other":                  {[]suspect{asking, left}, []inquiry{ask(0, 1)}, rulings(is(0, give, 0))},
		"two parties: one that has asked already may ask more": {[]suspect{asking, bob}, []inquiry{ask(0, 1)}, nil},
		"one party, three calls: the third may end": {[]suspect{alice, alice, alice},
			[]inquiry{ask(0, 1, 2), ask(0, 1, 2)}, nil},
		"one party: a call that was withdrawn is asked nothing": {[]suspect{left, alice}, []inquiry{ask(0, 1)},
			rulings(is(0, give, 1))},
		"one party, and all of it has left": {[]suspect{left, left}, []inquiry{ask(0, 1)}, rulings(is(0, withdrawn, 0))},
		"one question tells on another": {[]suspect{alice, bob, deaf}, []inquiry{ask(0, 1), ask(0)},
			rulings(is(1, give, 0), is(0, give, 1))},
		"a question of some calls does not hurt that of all": {[]suspect{alice, bob, nobody},
			[]inquiry{ask(0, 1, 2), ask(0, 1), ask(0, 1)}, rulings(is(2, undecided, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			var got []ruling
			for range 10 {
				r, ok := attribute(tc.questions, tc.suspects)
				if !ok {
					break
				}
				if alone := len(tc.questions[r.question].suspects) == 1; r.certain != alone {
					t.Errorf("question %d: certain %v of %v", r.question, r.certain, tc.questions[r.question].suspects)
				}
				r.certain = false
				got = append(got, r)
				tc.questions = append(tc.questions[:r.question:r.question], tc.questions[r.question+1:]...)
				for i, q := range tc.questions {
					var of []int
					for _, s := range q.suspects {
						if r.verdict != give || s != r.suspect {
							of = append(of, s)
						}
					}
					tc.questions[i].suspects = of
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(ruling{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
