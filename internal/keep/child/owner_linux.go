package child

import (
	"slices"
	"strconv"
)

// orphan is what is known of a process that lost its parent and was handed to the next subreaper by the kernel.
type orphan struct {
	pid                  int
	group, session       int // 0: unknown
	limitTag, environTag tag // in its limits, in its environment; 0: none
}

// candidate is a server whose descendants may turn up.
type candidate struct {
	slot   int
	leader int // its pid, pinned: not reaped yet
	// spares says that its descendants outside its group are left alone ([KillGroup]).
	spares bool
}

// owner says which of the servers k descends from. The slot [spared] stands for all whose descendants are left alone.
// What is ours but of none of these servers keeps the slot it had. known is false when nothing tells.
//
// The limit counts most: no program changes it. A session or group of the leader's number is as sure, but is easily
// left. The environment comes last: a program may hand its own environment to something that is not its descendant.
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

// marked says which server the process with a tag belongs to. Another instance's is a nested outlive's: it is its own server's child.
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

// mustDie says whether k must die because the server dying, one of servers, has ended. Someone whom nothing
// identifies is dying's if it is the only one that ever let somebody out of its group.
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
	// Left over from a server that has been reported as gone already.
	return !slices.ContainsFunc(servers, func(s candidate) bool { return s.slot == slot })
}

// lookAt reads what owner needs to know of a child of ours, no more than that: usually the limit alone says it.
func lookAt(pid int, self tag) orphan {
	k := orphan{pid: pid, limitTag: limitTag(pid)}
	if k.limitTag.valid() && k.limitTag.instance() == self.instance() {
		return k
	}
	if f := statFields(pid); len(f) > 3 {
		k.group, _ = strconv.Atoi(f[2])
		k.session, _ = strconv.Atoi(f[3])
	}
	k.environTag = environTag(pid)
	return k
}
