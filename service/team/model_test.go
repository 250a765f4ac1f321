package team

import (
	"fmt"
	"testing"
)

// The model is an exhaustive search over what hub, standby, backups and workers can do, in any order, for one input:
// inputs do not touch each other. It holds the two rules and the generations, and no code; the tests with real
// servers hold the code against the same promises.
//
// A server has a timeline and a database; a database has the present generation with the identity that it was begun
// with, and of the input whether it is there, queued, claimed, closed. A worker has a log, in which an intent
// stands once, and two processes. A commit may be lost, or its answer.

const (
	nServers = 4 // the primary, its standby, and two restores of one backup
	nWorkers = 2
	nProcs   = 2 // of each worker
	maxGens  = 3 // adoptions, and the first generation
)

// database is what a server has on its disk.
type database struct {
	gen      uint8 // the present generation, from 1 on
	identity uint8 // the timeline on which it began
	there    uint8 // the generation of the input; 0: it is not there
	queued   bool
	owner    int8 // the worker that claimed the input; -1: none
	closed   bool
}

// server is one server.
type server struct {
	up       bool
	timeline uint8
	db       database
	// late is a claim's transaction that is under way: the worker and its process, and the one that waits for the answer.
	late int8 // -1: none
}

// process is one process of a worker.
type process struct {
	owns bool // it knows that its worker owns the input, and is about to call
}

// world is a state of everything.
type world struct {
	servers  [nServers]server
	backup   database
	hasCopy  bool
	logs     [nWorkers]bool // an intent is on the worker's log
	procs    [nWorkers][nProcs]process
	calls    uint8
	signed   uint8 // the generation for which the input was signed; 0: it was not yet
	fate     bool  // its submission was broken off, and the sender does not know
	adopted  uint8 // how many adoptions there were
	timeline uint8 // the newest
}

// rules are what may be broken, one at a time, to see that the search finds it.
type rules struct {
	claimMoves     bool // a claim can pass to another worker
	anyServer      bool // a claim is not compared with the server's identity
	laterGen       bool // an adoption leaves inputs of earlier generations in the queue
	noUniqueIntent bool // a worker's log takes a second intent for an input
	noKey          bool // a claim has no unique key, and does not take the input from the queue
	elsewhere      bool // a sender that does not know sends its input to another generation
}

// start is a hub with one primary.
func start() (w world) {
	for i := range w.servers {
		w.servers[i].late = -1
		w.servers[i].db.owner = -1
	}
	w.servers[0] = server{up: true, timeline: 1, db: database{gen: 1, identity: 1, owner: -1}, late: -1}
	w.backup.owner = -1
	w.timeline = 1
	return w
}

// next calls visit with every world that one step leads to.
func (r rules) next(w world, visit func(string, world)) {
	r.stepServers(w, visit)
	for s := range nServers {
		if w.servers[s].up {
			r.stepSender(w, s, visit)
			r.stepHub(w, s, visit)
		}
	}
	for k := range nWorkers {
		for p := range nProcs {
			r.stepProcess(w, k, p, visit)
		}
	}
}

// stepServers: the standby follows, is promoted; a backup is made, restored; servers die.
func (r rules) stepServers(w world, visit func(string, world)) {
	primary, standby := &w.servers[0], &w.servers[1]
	if primary.up && !standby.up && standby.timeline == 0 && standby.db != primary.db {
		n := w
		n.servers[1].db = primary.db // it may be behind by any number of commits
		visit("replicate", n)
	}
	if standby.timeline == 0 && standby.db.gen != 0 {
		n := w
		n.timeline++
		n.servers[1].up, n.servers[1].timeline = true, n.timeline
		visit("promote", n)
	}
	if !w.hasCopy && primary.up {
		n := w
		n.hasCopy, n.backup = true, primary.db
		visit("back up", n)
	}
	for i := 2; i < nServers; i++ {
		if w.hasCopy && w.servers[i].timeline == 0 && (i == 2 || w.servers[2].timeline != 0) {
			n := w
			n.timeline++
			n.servers[i] = server{up: true, timeline: n.timeline, db: w.backup, late: -1}
			visit("restore", n)
		}
	}
	for i, s := range w.servers {
		if s.timeline != 0 {
			n := w
			n.servers[i].up, n.servers[i].late = !s.up, -1 // what was not committed is gone
			visit("server dies, or starts again", n)
		}
	}
}

// stepSender: the input is submitted, perhaps without an answer, and then looked for.
func (r rules) stepSender(w world, s int, visit func(string, world)) {
	db := &w.servers[s].db
	genuine := db.identity == w.servers[s].timeline
	put := func(n world) world {
		if n.servers[s].db.there == 0 {
			n.servers[s].db.there, n.servers[s].db.queued = n.servers[s].db.gen, true
		}
		return n
	}
	if w.signed == 0 && genuine {
		n := w
		n.signed = db.gen
		visit("submit", put(n))
		n.fate = true
		visit("submit, no answer, not there", n)
		visit("submit, no answer, there", put(n))
	}
	if w.fate && genuine && (db.gen == w.signed || r.elsewhere) {
		n := put(w)
		visit("submit again, no answer", n)
		n.fate = false
		visit("submit again", n)
	}
}

// mayClaim reports whether the transaction of a claim takes the input on this server.
func (r rules) mayClaim(s server) bool {
	return s.db.queued && (s.db.identity == s.timeline || r.anyServer) && (s.db.there == s.db.gen || r.laterGen) && (s.db.owner < 0 || r.noKey)
}

// stepHub: a claim's transaction that is under way ends; a person adopts.
func (r rules) stepHub(w world, s int, visit func(string, world)) {
	srv := w.servers[s]
	if srv.late >= 0 {
		n := w
		n.servers[s].late = -1
		visit("late claim fails", n)
		if r.mayClaim(srv) {
			n.servers[s].db.owner, n.servers[s].db.queued = srv.late, r.noKey
			visit("late claim lands", n)
		}
	}
	if srv.db.identity != srv.timeline && w.adopted < maxGens-1 {
		n := w
		n.adopted++
		db := &n.servers[s].db
		db.gen, db.identity = 1+n.adopted, srv.timeline
		if db.there != 0 {
			db.closed = true
		}
		if !r.laterGen {
			db.queued = false
		} else if db.there != 0 && db.owner < 0 {
			db.there = db.gen
		}
		visit("adopt", n)
	}
}

// stepProcess: a process claims, with and without an answer, looks at its worker's claims, calls, or dies.
func (r rules) stepProcess(w world, k, p int, visit func(string, world)) {
	if w.procs[k][p].owns {
		n := w
		n.procs[k][p].owns = false
		visit("process dies", n)
		if !w.logs[k] || r.noUniqueIntent {
			n.logs[k] = true
			n.calls++
			visit("call", n)
		}
		return
	}
	for s, srv := range w.servers {
		if !srv.up {
			continue
		}
		if r.mayClaim(srv) {
			n := w
			n.servers[s].db.owner, n.servers[s].db.queued = int8(k), r.noKey
			visit("claim, no answer", n)
			n.procs[k][p].owns = true
			visit("claim", n)
		}
		if srv.late < 0 && srv.db.queued {
			n := w
			n.servers[s].late = int8(k)
			visit("claim under way", n)
		}
		if srv.db.owner == int8(k) && (!w.logs[k] || r.noUniqueIntent) {
			n := w
			n.procs[k][p].owns = true
			visit("look", n)
		}
		if r.claimMoves && srv.db.owner >= 0 && srv.db.owner != int8(k) {
			n := w
			n.servers[s].db.owner = int8(k)
			n.procs[k][p].owns = true
			visit("take over", n)
		}
	}
}

// alike is one of the worlds that differ by the names of workers and processes alone.
func (w world) alike() world {
	for k := range w.procs {
		if w.procs[k][1].owns && !w.procs[k][0].owns {
			w.procs[k][0], w.procs[k][1] = w.procs[k][1], w.procs[k][0]
		}
	}
	weight := func(k int) (n int) {
		for i, s := range w.servers {
			if s.db.owner == int8(k) {
				n |= 1 << i
			}
			if s.late == int8(k) {
				n |= 1 << (i + nServers)
			}
		}
		if w.backup.owner == int8(k) {
			n |= 1 << (2 * nServers)
		}
		if w.logs[k] {
			n |= 1 << (2*nServers + 1)
		}
		for i, p := range w.procs[k] {
			if p.owns {
				n |= 1 << (2*nServers + 2 + i)
			}
		}
		return n
	}
	if weight(1) > weight(0) {
		flip := func(k int8) int8 {
			if k < 0 {
				return k
			}
			return 1 - k
		}
		for i := range w.servers {
			w.servers[i].db.owner, w.servers[i].late = flip(w.servers[i].db.owner), flip(w.servers[i].late)
		}
		w.backup.owner = flip(w.backup.owner)
		w.logs[0], w.logs[1] = w.logs[1], w.logs[0]
		w.procs[0], w.procs[1] = w.procs[1], w.procs[0]
	}
	return w
}

// search visits every world that can be reached. It returns the steps to one in which the input was called twice, as
// few as there can be, nil if there is none, and how many worlds there are.
func (r rules) search() (path []string, worlds int) {
	type origin struct {
		from world
		step string
	}
	first := start()
	seen := map[world]origin{first: {}}
	level := []world{first}
	for len(level) > 0 {
		var following []world
		for _, w := range level {
			var found *world
			r.next(w, func(step string, n world) {
				if found != nil {
					return
				}
				n = n.alike()
				if _, ok := seen[n]; ok {
					return
				}
				seen[n] = origin{w, step}
				if n.calls > 1 {
					found = &n
				}
				following = append(following, n)
			})
			if found != nil {
				for at := *found; at != first; at = seen[at].from {
					path = append([]string{seen[at].step}, path...)
				}
				return path, len(seen)
			}
		}
		level = following
	}
	return nil, len(seen)
}

// TestModel: whatever happens in whatever order, the input is called at most once.
func TestModel(t *testing.T) {
	path, worlds := rules{}.search()
	t.Logf("%d worlds", worlds)
	if path != nil {
		t.Errorf("called twice: %v", path)
	}
	if worlds < 100_000 {
		t.Errorf("only %d worlds were visited", worlds)
	}
}

// TestControls: each rule that is broken is found out.
func TestControls(t *testing.T) {
	for name, r := range map[string]rules{
		"a claim that moves": {claimMoves: true}, "a claim that is not compared with the identity": {anyServer: true},
		"an input claimable in a later generation": {laterGen: true}, "a worker without its log's uniqueness": {noUniqueIntent: true},
		"a submission sent to another generation": {elsewhere: true},
		"a claim without its unique key":          {noKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			path, worlds := r.search()
			if path == nil {
				t.Errorf("not found in %d worlds", worlds)
			}
			t.Log(fmt.Sprint(path))
		})
	}
}
