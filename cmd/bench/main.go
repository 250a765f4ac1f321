// Command bench measures Perlica against bare programs in one run, and prints ratios:
// absolute figures do not travel. Run it with 'make bench'; docs/performance.md says what
// the lines mean.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		agent()
		return
	}
	rounds := flag.Int("rounds", 40, "how often each process is started")
	updates := flag.Int("updates", 100_000, "updates in the flood")
	flag.Parse()
	if err := run(*rounds, *updates); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds, updates int) error {
	dir, err := os.MkdirTemp("", "perlica-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the system's temporary folder
	for _, step := range []func() error{
		func() error { return processes(dir, rounds) },
		func() error { return floods(dir, updates) },
		func() error { return singles(dir) },
		func() error { return prompts(dir) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ratio prints one comparison.
func ratio(what string, ours, bare float64, unit string, promise string) {
	fmt.Printf("%-52s %10.2f %10.2f %-9s ratio %5.2f  (%s)\n", what, ours, bare, unit, ours/bare, promise)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// processes compares whole processes: perlica run hello, and the bare program.
func processes(dir string, rounds int) error {
	perlica, bare := filepath.Join(dir, "perlica"), filepath.Join(dir, "bare")
	for out, pkg := range map[string]string{perlica: "./cmd/perlica", bare: "./cmd/bench/bare"} {
		if b, err := exec.Command("go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
		}
	}
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		return err
	}
	command := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = project
		// Nothing but the built-in agent is on PATH.
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(dir, "home")}
		return cmd
	}
	ours, theirs := []string{perlica, "run", "hello"}, []string{bare, filepath.Join(project, "bare.db")}
	var a, b []time.Duration
	var peak int64
	for i := range rounds + 2 { // the first two make the files and warm the caches
		for argv, to := range map[*[]string]*[]time.Duration{&ours: &a, &theirs: &b} {
			cmd := command((*argv)...)
			start := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %w\n%s", *argv, err, out)
			}
			if i < 2 {
				continue
			}
			*to = append(*to, time.Since(start))
			if to == &a {
				peak = max(peak, peakMemory(cmd.ProcessState))
			}
		}
	}
	ratio("perlica run hello, whole process", ms(median(a)), ms(median(b)), "ms", "at most 3")
	if peak > 0 {
		fmt.Printf("%-52s %10.1f %10s %-9s              (at most 25)\n", "  its peak of resident memory", float64(peak)/(1<<20), "", "MB")
	}
	return syncs(command, ours, theirs)
}
