package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// million measures whole processes that read logs of a million events, and the time for opening one and appending an
// event. The benchmarks of the packages make the logs.
func million(dir string, opt options) {
	perlica := filepath.Join(dir, "perlica")
	build(perlica, "./cmd/perlica")
	at := cmp.Or(opt.keep, dir)
	signed, runs := filepath.Join(at, "signed"), filepath.Join(at, "runs")
	makeLog(signed, "./eventlog", "-bench", "^BenchmarkVerify$", "-args", "-verify-events", "1000000", "-verify-log")
	makeLog(runs, "./kernel/report", "-bench", "^BenchmarkFindRun$", "-args", "-events", "1000000", "-log")
	command := func(log string, argv ...string) *exec.Cmd {
		cmd := exec.Command(perlica, argv...)
		cmd.Dir = log
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(log, "home")}
		return cmd
	}
	adopt(runs, "eventlog.db", "search.db")
	output(command(runs, "log", "search", "please", "-n", "1")) // The first search makes the index.
	adopt(signed, "eventlog.db", "eventlog.anchor")
	move(filepath.Join(signed, "keys"), filepath.Join(signed, "home", "state", "keys"))
	id := fmt.Sprintf("0199%04x-%04x-7ccc-8ddd-%04x%08x", 0, 12_345, 12_345, uint32(12_345*2654435761&0xffffffff))
	for _, line := range []struct {
		what, promise string
		log           string
		rounds        int
		argv          []string
	}{
		{"perlica version", "", runs, 15, []string{"version"}},
		{"log verify, 1 KiB each, a checkpoint per 200", "at most 2000", signed, 5, []string{"log", "verify"}},
		{"log prove", "milliseconds", signed, 15, []string{"log", "prove", "500000"}},
		{"log search, a word of every input", "at most 100", runs, 15, []string{"log", "search", "please"}},
		{"log search, a word that is there once", "at most 100", runs, 15, []string{"log", "search", "unique"}},
		{"log search, words that never stand together", "at most 100", runs, 15,
			[]string{"log", "search", "please", "tests"}},
		{"log show RUN", "at most 50", runs, 15, []string{"log", "show", id}},
	} {
		took, peak := times(command, line.log, line.argv, line.rounds)
		fmt.Printf("%-52s %10.1f ms, %6.1f MB at the peak  (%s)\n", line.what, ms(took), float64(peak)/(1<<20), line.promise)
	}
	s := startWeb(runs, func(argv ...string) *exec.Cmd { return command(runs, argv...) })
	for _, line := range []struct{ path, promise string }{
		{"/v1/runs/" + id, "at most 20"}, {"/v1/runs/" + id + "/story", ""}, {"/v1/runs", ""}, {"/v1/sessions", ""},
		{"/v1/questions", ""},
		{"/v1/search?q=unique", ""}, {"/v1/events?limit=100&after=0", ""},
	} {
		fmt.Printf("%-52s %10.1f ms                         (%s)\n", "GET "+strings.Replace(line.path, id, "{id}", 1),
			ms(s.timeGet(line.path, 25)), line.promise)
	}
	s.end()
	took := reopened(contextFile(signed, "eventlog.db"))
	fmt.Printf("%-52s %10.1f ms                         (%s)\n", "open, and append one event", ms(took), "at most 20")
}

// contextFile returns the path of a file of the default context in the project.
func contextFile(project, name string) string {
	return filepath.Join(project, ".perlica_config", "contexts", "default", name)
}

// makeLog runs a benchmark of this repository that makes its log in dir, unless the log exists.
func makeLog(dir, pkg string, args ...string) {
	if _, err := os.Stat(contextFile(dir, "eventlog.db")); err == nil {
		return
	}
	check(os.MkdirAll(dir, 0o700))
	argv := slices.Concat([]string{"test", pkg, "-run", "^$", "-benchtime", "1x"}, args, []string{dir})
	output(exec.Command("go", argv...))
}

// adopt moves the named files of a benchmark to their places in a project.
func adopt(project string, names ...string) {
	for _, name := range names {
		move(filepath.Join(project, name), contextFile(project, name))
	}
}

// move renames a file and makes the needed folders. It ignores a missing file, because an earlier run has moved it.
func move(from, to string) {
	check(os.MkdirAll(filepath.Dir(to), 0o700))
	if err := os.Rename(from, to); !errors.Is(err, os.ErrNotExist) {
		check(err)
	}
}

// times starts a process several times. It returns the median of the durations and the largest peak memory.
func times(command func(log string, argv ...string) *exec.Cmd, log string, argv []string,
	rounds int) (took time.Duration, peak int64) {
	var all []time.Duration
	for range rounds {
		cmd := command(log, argv...)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "nothing was found") {
			check(fmt.Errorf("perlica %s: %w\n%s", strings.Join(argv, " "), err, out))
		}
		all = append(all, time.Since(start))
		peak = max(peak, peakMemory(cmd.ProcessState))
	}
	return median(all), peak
}
