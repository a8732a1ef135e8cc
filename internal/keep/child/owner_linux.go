package child

import "slices"

// orphan describes a process whose parent has died, and which the kernel gave to the next subreaper.
type orphan struct {
	pid                  int
	group, session       int // 0: unknown
	limitTag, environTag tag // in its limits, in its environment; 0: none
}

// candidate is a server whose descendants may become orphans.
type candidate struct {
	slot   int
	leader int // its pid, pinned: not reaped yet
	// spares says that its descendants outside its group are left alone ([KillGroup]).
	spares bool
}

// owner says which of the servers k descends from. The slot [spared] stands for all whose descendants are left alone. A
// process of ours that belongs to none of these servers keeps its slot. known is false if k cannot be identified.
//
// The limit counts most: no program changes it. A session or group of the leader's PID is as certain, but easily left.
// The environment comes last: a program may pass its environment to a process that is not its descendant.
func owner(k orphan, self tag, servers []candidate) (slot int, known bool) {
	if slot, known = marked(k.limitTag, self, servers); known {
		return slot, true
	}
	for _, s := range servers {
		if k.session == s.leader || k.group == s.leader {
			if s.spares {
				return spared, true
			}
			return s.slot, true
		}
	}
	return marked(k.environTag, self, servers)
}

// marked says which server a tagged process belongs to. Another instance's tag is that of a nested outlive, a child of
// its own server.
func marked(b, self tag, servers []candidate) (slot int, known bool) {
	switch {
	case !b.valid():
		return 0, false
	case b.slot() == spared:
		return spared, true
	case b.instance() == self.instance():
		return b.slot(), true
	}
	for _, s := range servers {
		if s.leader == b.pid() && !s.spares {
			return s.slot, true
		}
	}
	return 0, false
}

// mustDie says whether k must be killed because the server dying, one of servers, has ended. An unidentified process
// belongs to dying if that is the only server that ever had a process outside of its group.
func mustDie(k orphan, self tag, dying candidate, servers []candidate, spares bool) bool {
	slot, known := owner(k, self, servers)
	switch {
	case !known:
		return len(servers) == 1 && !spares && !dying.spares
	case slot == spared:
		return false
	case slot == dying.slot:
		return true
	}
	// It is left over from a server that was already reported as gone.
	return !slices.ContainsFunc(servers, func(s candidate) bool { return s.slot == slot })
}

// lookAt reads what owner needs of a child of ours; usually the limit suffices.
func lookAt(pid int, self tag) orphan {
	k := orphan{pid: pid, limitTag: limitTag(pid)}
	if k.limitTag.valid() && k.limitTag.instance() == self.instance() {
		return k
	}
	r := newProcReader()
	if s, err := r.stat(pid); err == nil {
		k.group, k.session = int(s.group), int(s.session)
	}
	k.environTag = r.environTag(pid)
	return k
}
