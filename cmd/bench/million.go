package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// million measures whole processes that read logs of a million events, and what it takes to
// open one and append an event. The logs are those of the packages' own benchmarks.
func million(dir string, opt options) error {
	perlica := filepath.Join(dir, "perlica")
	if err := build(map[string]string{perlica: "./cmd/perlica"}); err != nil {
		return err
	}
	at := opt.keep
	if at == "" {
		at = dir
	}
	signed, runs := filepath.Join(at, "signed"), filepath.Join(at, "runs")
	for _, made := range []struct {
		dir  string
		args []string
	}{
		{signed, []string{"./eventlog", "-bench", "^BenchmarkVerify$", "-args", "-verify-events", "1000000", "-verify-log"}},
		{runs, []string{"./kernel/report", "-bench", "^BenchmarkFindRun$", "-args", "-events", "1000000", "-log"}},
	} {
		if err := makeLog(made.dir, made.args); err != nil {
			return err
		}
	}
	command := func(log string, argv ...string) *exec.Cmd {
		cmd := exec.Command(perlica, argv...)
		cmd.Dir = log
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(log, "home")}
		return cmd
	}
	if err := adopt(command, runs, "eventlog.db", "search.db"); err != nil {
		return err
	}
	if err := adopt(command, signed, "eventlog.db", "eventlog.anchor"); err != nil {
		return err
	}
	if err := move(filepath.Join(signed, "keys"), filepath.Join(signed, "home", "state", "keys")); err != nil {
		return err
	}
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
		{"log search, words that never stand together", "at most 100", runs, 15, []string{"log", "search", "please", "tests"}},
		{"log show RUN", "at most 50", runs, 15, []string{"log", "show", id}},
	} {
		took, peak, err := times(command, line.log, line.argv, line.rounds)
		if err != nil {
			return err
		}
		fmt.Printf("%-52s %10.1f ms, %6.1f MB at the peak  (%s)\n", line.what, ms(took), float64(peak)/(1<<20), line.promise)
	}
	took, err := reopened(contextFile(signed, "eventlog.db"))
	if err != nil {
		return err
	}
	fmt.Printf("%-52s %10.1f ms                         (%s)\n", "open, and append one event", ms(took), "at most 20")
	return nil
}

// contextFile is the place of a file of the default context in the project.
func contextFile(project, name string) string {
	return filepath.Join(project, ".perlica_config", "contexts", "default", name)
}

// makeLog has a benchmark of this repository make its log in dir, unless it is there.
func makeLog(dir string, args []string) error {
	if _, err := os.Stat(contextFile(dir, "eventlog.db")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	argv := slices.Concat([]string{"test", args[0], "-run", "^$", "-benchtime", "1x"}, args[1:], []string{dir})
	out, err := exec.Command("go", argv...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make a log: %w\n%s", err, out)
	}
	return nil
}

// adopt makes the files that a benchmark made those of a project.
func adopt(command func(log string, argv ...string) *exec.Cmd, project string, names ...string) error {
	for _, name := range names {
		if err := move(filepath.Join(project, name), contextFile(project, name)); err != nil {
			return err
		}
	}
	if slices.Contains(names, "search.db") { // the index is made by the first search
		if out, err := command(project, "log", "search", "please", "-n", "1").CombinedOutput(); err != nil {
			return fmt.Errorf("make the index: %w\n%s", err, out)
		}
	}
	return nil
}

// move renames a file and makes the folders that it takes; what is gone has been moved before.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// times starts a process some times, and returns its median time and its peak of memory.
func times(command func(log string, argv ...string) *exec.Cmd, log string, argv []string, rounds int) (took time.Duration, peak int64, err error) {
	var all []time.Duration
	for range rounds {
		cmd := command(log, argv...)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "nothing was found") {
			return 0, 0, fmt.Errorf("perlica %s: %w\n%s", strings.Join(argv, " "), err, out)
		}
		all = append(all, time.Since(start))
		peak = max(peak, peakMemory(cmd.ProcessState))
	}
	return median(all), peak, nil
}
