package diagnose

// taskDead holds for a session whose turn is over and that waits only for its background tasks, although they are
// dead. The CLI reports a task's end to the session; if it does not, the session waits for ever. It requires proof:
// every task is gone and silent.
func taskDead(e *Evidence, p Policy) answer {
	switch {
	case e.Process.Life != Alive:
		return no("its process is not known to live")
	case e.promised():
		return no("it has announced a silence of %s", e.Beat.Next)
	}
	for i := range e.Sessions {
		s := &e.Sessions[i]
		if len(s.Tasks) == 0 || s.EndedAsking || s.LastAge <= p.Task {
			continue
		}
		dead, why := s.deadTask(p)
		switch beside := e.beside(p, s); {
		case dead == nil:
			return no("%s", why)
		case beside != "":
			return no("a background task is dead, and %s", beside)
		}
		return yes(dead.Silent, "%s waits for a background task (%s%s) that is dead: no process of it is left, it has written nothing for %s "+
			"(limit %s), and the model was not told of its end; %s", s.name(), dead.Tool, noted(dead.Text), dead.Silent.brief(), dead.limit(p), e.Process.text())
	}
	return no("no session waits for a background task that is dead")
}

// deadTask returns the dead task that a session waits for, or says why there is none.
func (s *Session) deadTask(p Policy) (dead *Task, why string) {
	for i := range s.Tasks {
		t := &s.Tasks[i]
		switch {
		case !t.Awaited:
			return nil, s.name() + " does not wait for its background task"
		case !t.Gone:
			return nil, "a process that could be its background task runs"
		case t.GoneAge <= t.limit(p):
			return nil, "its background task was seen gone " + ago(t.GoneAge)
		case !t.SilentKnown:
			return nil, "nothing shows when its background task last wrote something"
		case t.Silent <= t.limit(p):
			return nil, "its background task wrote something " + ago(t.Silent)
		case dead == nil || t.Silent > dead.Silent:
			dead = t
		}
	}
	return dead, ""
}

// limit is how long a task may be gone and silent.
func (t *Task) limit(p Policy) Span {
	if t.Shell {
		return p.Task
	}
	return max(p.Task, p.Tool)
}
