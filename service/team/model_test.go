package team

import (
	"fmt"
	"testing"
)

// The model searches exhaustively over all actions of hub, standby, backups and workers for one input, in any order.
// Inputs do not influence each other. The model contains the rules of one claim for each input and of one intent in
// each log, and the generations, but no code. Tests with real servers check the code against the same promises.
//
// A server has a timeline and a database. A database has the present generation with the identity
// at its start, and the state of the input: there, queued, claimed, closed. A worker has a log,
// which can have one intent, and two processes. A commit may be lost, and so may its confirmation.

const (
	nServers = 4 // the primary, its standby, and two restores of one backup
	nWorkers = 2
	nProcs   = 2 // processes of each worker
	maxGens  = 3 // adoptions and the first generation
)

// database is the content of a server's disk.
type database struct {
	gen      uint8 // the present generation, from 1 on
	identity uint8 // the timeline on which it began
	there    uint8 // the generation of the input; 0 means not there
	queued   bool
	owner    int8 // the worker that claimed the input; -1: none
	closed   bool
}

// server is one server.
type server struct {
	up       bool
	timeline uint8
	db       database
	// late is the running transaction of a claim: it encodes the worker and the process that waits
	// for the confirmation.
	late int8 // -1: none
}

// process is one process of a worker.
type process struct {
	owns bool // the process knows that its worker owns the input, and is about to call
}

// world is a state of the whole system.
type world struct {
	servers  [nServers]server
	backup   database
	hasCopy  bool
	logs     [nWorkers]bool // the worker's log has an intent
	procs    [nWorkers][nProcs]process
	calls    uint8
	signed   uint8 // the generation for which the input was signed; 0 means not yet
	fate     bool  // the submission was interrupted, and the sender does not know its fate
	adopted  uint8 // number of adoptions
	timeline uint8 // the newest one
}

// rules lists the rules that a test breaks, one at a time, to see that the search detects it.
type rules struct {
	claimMoves     bool // a claim can pass to another worker
	anyServer      bool // a claim is not compared with the server's identity
	laterGen       bool // an adoption leaves inputs of earlier generations in the queue
	noUniqueIntent bool // a worker's log accepts a second intent for an input
	noKey          bool // a claim has no unique key and does not take the input from the queue
	elsewhere      bool // a sender that does not know the fate sends its input to another generation
}

// start returns a hub with one primary.
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

// next calls the function "visit" with every world that one step leads to.
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

// stepServers covers the servers: the standby follows and is promoted, a backup is made and
// restored, servers die.
func (r rules) stepServers(w world, visit func(string, world)) {
	primary, standby := &w.servers[0], &w.servers[1]
	if primary.up && !standby.up && standby.timeline == 0 && standby.db != primary.db {
		n := w
		n.servers[1].db = primary.db // the standby may lack any number of commits
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
			n.servers[i].up, n.servers[i].late = !s.up, -1 // uncommitted work is lost
			visit("server dies, or starts again", n)
		}
	}
}

// stepSender covers the sender: it submits the input, perhaps without a confirmation, and then
// looks for it.
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

// mayClaim reports whether a claim's transaction takes the input on this server.
func (r rules) mayClaim(s server) bool {
	return s.db.queued && (s.db.identity == s.timeline || r.anyServer) && (s.db.there == s.db.gen || r.laterGen) &&
		(s.db.owner < 0 || r.noKey)
}

// stepHub covers the hub: a running claim's transaction ends, or a person adopts.
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

// stepProcess covers a process: it claims with or without a confirmation, looks at its worker's
// claims, calls, or dies.
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

// alike returns a representative of all worlds that differ only in the names of workers and
// processes.
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

// search visits every reachable world. It returns the shortest steps to a second call of the input,
// or nil, and the number of worlds.
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

// TestModel checks that the input is called at most once in every order of events.
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

// TestControls checks that the search detects each broken rule.
func TestControls(t *testing.T) {
	for name, r := range map[string]rules{
		"a claim that moves": {claimMoves: true}, "a claim that is not compared with the identity": {anyServer: true},
		"an input claimable in a later generation": {laterGen: true},
		"a worker without its log's uniqueness":    {noUniqueIntent: true},
		"a submission sent to another generation":  {elsewhere: true},
		"a claim without its unique key":           {noKey: true},
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
