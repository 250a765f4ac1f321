package eventlog

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A recording is the list of operations of some writers, with the possible stories of their log.
type recording struct {
	ops  []op
	seed uint64
	name string

	// stories are the possible contents of the log. Usually there is one story. There are two if a commit failed and
	// the next writer did not find the events of that commit. Those events may appear again until the next writer has
	// acknowledged an event.
	stories []story
}

// A crash is one state of the folder of a recording after a power failure.
type crash struct {
	of    *recording
	at    int // number of ops before the power failure
	fate  string
	acked int
	// wrote is the number of the writer that acknowledged events last.
	wrote int
	files map[string][]byte
}

func (c crash) String() string {
	last := c.of.ops[max(0, c.at-8):c.at]
	return fmt.Sprintf("%s (seed %d) after %d of %d operations, fate %q, %d events acknowledged; the last operations: %v",
		c.of.name, c.of.seed, c.at, len(c.of.ops), c.fate, c.acked, last)
}

// crashes makes n different states and calls the function "yield" with each of them, until it returns false. If the
// recording has fewer states, it makes only these.
func (r *recording) crashes(dice *rand.Rand, n int, yield func(crash) bool) {
	seed, seen := maphash.MakeSeed(), map[uint64]bool{}
	for try := 0; len(seen) < n && try < 4; try++ {
		points := make([]int, n-len(seen))
		for i := range points {
			points[i] = dice.IntN(len(r.ops) + 1)
		}
		slices.Sort(points) // then one pass over the recording is enough for all points
		d := newDisk()
		for _, at := range points {
			for d.now < at {
				d.applyOp(r.ops[d.now])
			}
			f := d.chooseFate(dice)
			c := crash{of: r, at: at, fate: f.name, acked: d.acked, wrote: d.wrote,
				files: d.stateAfter(f.cut, f.links, f.stretch)}
			if key := c.hash(seed); !seen[key] {
				seen[key] = true
				if !yield(c) {
					return
				}
			}
		}
	}
}

func (c crash) hash(seed maphash.Seed) uint64 {
	sum := uint64(c.acked) << 32
	for name, b := range c.files {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.WriteString(name) // never fails
		_ = h.WriteByte(0)
		_, _ = h.Write(b)
		sum += h.Sum64()
	}
	return sum
}

// checkState writes the files of the state into dir and checks their log.
func (c crash) checkState(dir, file string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, b := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	stories := c.of.stories
	if c.wrote >= len(stories) {
		stories = stories[len(stories)-1:]
	}
	_, err := checkLog(filepath.Join(dir, file), c.acked, stories...)
	return err
}

// keepFiles stores the files of a bad state and returns their folder.
func (c crash) keepFiles(t *testing.T) string {
	dir := filepath.Join(t.ArtifactDir(), fmt.Sprintf("state-%d-%d", c.of.seed, c.at))
	err := os.MkdirAll(dir, 0o700)
	for name, b := range c.files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	if err != nil {
		return err.Error()
	}
	return dir
}

const logName = "eventlog.db"

// quickDir returns a folder in memory if the system has one. These tests only simulate power failures, and a sync in
// memory takes no time.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "perlica-torture-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // memory is freed with the machine at the latest
	return dir
}

// A tally counts the results of many states.
type tally struct {
	mu     sync.Mutex
	states int
	fates  map[string]int
	found  map[string]int // by kind of fault
	first  string
}

func (ta *tally) addResult(c crash, err error) {
	ta.mu.Lock()
	defer ta.mu.Unlock()
	if ta.fates == nil {
		ta.fates, ta.found = map[string]int{}, map[string]int{}
	}
	ta.states++
	ta.fates[c.fate]++
	switch {
	case err == nil:
		return
	case errors.Is(err, errLost):
		ta.found["lost"]++
	case errors.Is(err, errDamaged):
		ta.found["damaged"]++
	default:
		ta.found["other"]++
	}
	if ta.first == "" {
		ta.first = fmt.Sprintf("%v: %v", c, err)
	}
}

func (ta *tally) bad() int { return ta.found["lost"] + ta.found["damaged"] + ta.found["other"] }

// judgeStates checks n states of the recording on all processors. It calls the function "bad" for each bad state.
func (r *recording) judgeStates(t *testing.T, dice *rand.Rand, n int, ta *tally, bad func(crash, error)) {
	t.Helper()
	dir, queue := quickDir(t), make(chan crash, 4)
	var wg sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			i := 0
			for c := range queue {
				state := filepath.Join(dir, fmt.Sprint(worker, "-", i))
				i++
				err := c.checkState(state, logName)
				ta.addResult(c, err)
				if err != nil && bad != nil {
					bad(c, err)
				}
				_ = os.RemoveAll(state) // the next state has a folder with another name
			}
		})
	}
	r.crashes(dice, n, func(c crash) bool { queue <- c; return true })
	close(queue)
	wg.Wait()
	_ = os.RemoveAll(dir) // a long test makes many folders
}

// scenes are sequences of writers.
var scenes = []struct {
	name   string
	record func(t *testing.T, seed uint64) *recording
}{
	// The first writer closes the log, the second one dies, and the third one recovers the log.
	{"three writers", func(t *testing.T, seed uint64) *recording {
		dir := quickDir(t)
		s := script{Path: filepath.Join(dir, logName), Seed: seed, Runs: 2, Keys: signingKeys(t)}
		left, last := s, s
		left.First, left.Runs, left.Leave = 2, 1, true
		last.First, last.Runs = 3, 1
		scripts := []script{s, left, last}
		r := newRecorder(dir)
		for _, s := range scripts {
			if _, failed := said(r.performTraced(t, s)); failed != "" {
				t.Fatal(failed)
			}
		}
		return &recording{ops: r.ops, stories: []story{tell(scripts...)}, seed: seed}
	}},
	// The first writer is killed just before a sync. The next writer sees its events, so they must be safe from then
	// on.
	{"killed before a sync", func(t *testing.T, seed uint64) *recording {
		dir := quickDir(t)
		s := script{Path: filepath.Join(dir, logName), Seed: seed, Runs: 2}
		r := newRecorder(dir)
		r.performTraced(t, s, "-e", fmt.Sprintf("inject=fsync,fdatasync:signal=KILL:when=%d", 6+seed%12))
		return r.goOn(t, s)
	}},
	// A sync fails, and its log fails. The next writer finds out whether the events were written.
	{"a sync fails", func(t *testing.T, seed uint64) *recording {
		dir := quickDir(t)
		s := script{Path: filepath.Join(dir, logName), Seed: seed, Runs: 2}
		r := newRecorder(dir)
		r.performTraced(t, s, "-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d", 1+seed%18))
		return r.goOn(t, s)
	}},
	// A sync fails. The same process reopens the log and continues.
	{"a sync fails and is survived", func(t *testing.T, seed uint64) *recording {
		dir := quickDir(t)
		s := script{Path: filepath.Join(dir, logName), Seed: seed, Runs: 2, Revive: true}
		r := newRecorder(dir)
		// Ignore the output, because the fault may also let Open fail.
		r.performTraced(t, s, "-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d", 7+seed%12))
		st := tell(s)
		st.unsent = true
		return &recording{ops: r.ops, stories: []story{st}, seed: seed}
	}},
}

// goOn finds the last event of the first writer. Then it records a second writer.
func (r *recorder) goOn(t *testing.T, s script) *recording {
	t.Helper()
	next := script{Path: s.Path, Seed: s.Seed, First: s.Runs, Runs: 1}
	out := r.performTraced(t, next)
	var found int
	if _, err := fmt.Sscanf(string(out), "seen %d\n", &found); err != nil {
		t.Fatalf("the next writer could not open the log: %q", out)
	}
	if _, failed := said(out); failed != "" {
		t.Fatal(failed)
	}
	first := tell(s)
	first.unsent = true
	if _, whole := slices.BinarySearch(first.ends, found); !whole {
		t.Fatalf("the next writer found half a call: %d events", found)
	}
	return &recording{ops: r.ops, stories: []story{first, first.upTo(found).followedBy(next)}, seed: s.Seed}
}

// statesARecording is the maximum number of states from one recording. Further recordings find more faults than
// further states of one recording.
const statesARecording = 500

// TestTortureStates records writers and simulates a power failure at any moment, with any result that a disk permits.
// The log must be intact. It must have all acknowledged events, and all events that some process saw.
func TestTortureStates(t *testing.T) {
	straceable(t)
	var ta tally
	recordings := 0
	for left := *tortureStates; left > 0; {
		n := min((*tortureStates+len(scenes)-1)/len(scenes), statesARecording, left)
		scene := scenes[recordings%len(scenes)]
		seed := *tortureSeed + uint64(recordings)
		r := scene.record(t, seed)
		r.name = scene.name
		before := ta.states
		var once sync.Once // keep the files of only one bad state
		r.judgeStates(t, rand.New(rand.NewPCG(seed, 1)), n, &ta, func(c crash, err error) {
			once.Do(func() { t.Errorf("%v\n%v\nits files are in %s", err, c, c.keepFiles(t)) })
		})
		if left -= ta.states - before; ta.states == before {
			t.Fatalf("no states of %s", scene.name)
		}
		recordings++
	}
	t.Logf("seed %d: %d different crash states of %d recordings, %d bad (%v); %v", *tortureSeed, ta.states, recordings,
		ta.bad(), ta.found, ta.fates)
}

// TestTortureControls checks that the torture tests find logs that are not safe. It makes the states as
// TestTortureStates does.
func TestTortureControls(t *testing.T) {
	if testing.Short() {
		t.Skip("it tries SQLite's settings, which takes a while")
	}
	straceable(t)
	for _, tc := range []struct {
		name  string
		spoil func(*script)
		found []string
	}{
		{"synchronous=NORMAL", func(s *script) { s.Sync = "NORMAL" }, []string{"lost"}},
		{"synchronous=OFF", func(s *script) { s.Sync = "OFF" }, []string{"lost", "damaged"}},
		{"acknowledged before the commit", func(s *script) { s.Early = true }, []string{"lost"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := quickDir(t)
			s := script{Path: filepath.Join(dir, logName), Seed: *tortureSeed, Runs: 3}
			tc.spoil(&s)
			r := newRecorder(dir)
			r.performTraced(t, s)
			rec := &recording{ops: r.ops, stories: []story{tell(s)}, seed: s.Seed, name: tc.name}
			var ta tally
			rec.judgeStates(t, rand.New(rand.NewPCG(s.Seed, 2)), max(60, *tortureStates/100), &ta, nil)
			t.Logf("seed %d: of %d crash states %d lost something, %d were damaged", s.Seed, ta.states, ta.found["lost"],
				ta.found["damaged"])
			for _, kind := range tc.found {
				if ta.found[kind] == 0 {
					t.Errorf("none was %s: the harness is broken; first: %s", kind, strings.TrimSpace(ta.first))
				}
			}
		})
	}
}
