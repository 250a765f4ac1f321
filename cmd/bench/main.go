// Command bench measures Perlica against bare programs in one run, and prints ratios:
// absolute figures do not travel. Run it with 'make bench'; docs/performance.md says what
// the lines mean.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/perlica/perlica/provider/predictable"
)

// A comparison is what can be measured under a name.
type comparison struct {
	name  string
	takes string
	do    func(dir string, opt options) error
}

// comparisons are all, in the order in which they are made.
var comparisons = []comparison{
	{"process", "2 s", func(dir string, opt options) error { return processes(dir, opt.rounds) }},
	{"flood", "3 s", func(dir string, opt options) error { return floods(dir, opt.updates) }},
	{"update", "3 s", func(dir string, _ options) error { return singles(dir) }},
	{"prompt", "2 s", func(dir string, _ options) error { return prompts(dir) }},
	{"warm", "30 s", func(dir string, _ options) error { return warm(dir) }},
	{"append", "3 s", func(dir string, _ options) error { return durable(dir) }},
	{"group", "10 s", func(dir string, _ options) error { return groups(dir) }},
	{"growth", "2 minutes and 6 GB", func(dir string, _ options) error { return growth(dir) }},
	{"million", "3 minutes and 4 GB", million},
}

// parts are what the program is to itself: the processes it compares.
var parts = map[string]func(args []string) error{
	"agent": func([]string) error { agent(); return nil },
	"predictable": func([]string) error {
		return predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, predictable.Options{})
	},
	"proxy": func(args []string) error { return proxy(args[0], args[1]) },
}

// options are the flags.
type options struct {
	rounds  int
	updates int
	keep    string
}

func main() {
	if len(os.Args) > 1 {
		if play, ok := parts[os.Args[1]]; ok {
			if err := play(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				os.Exit(1)
			}
			return
		}
	}
	var opt options
	flag.IntVar(&opt.rounds, "rounds", 40, "how often each process is started")
	flag.IntVar(&opt.updates, "updates", 100_000, "updates in the flood")
	flag.StringVar(&opt.keep, "keep", "", "a `folder` for the logs of a million events, which are used again; else they are removed")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [flags] [NAME...]; without a name all of:")
		for _, c := range comparisons {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-10s takes %s\n", c.name, c.takes)
		}
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(flag.Args(), opt); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(names []string, opt options) error {
	for _, name := range names {
		if !slices.ContainsFunc(comparisons, func(c comparison) bool { return c.name == name }) {
			return fmt.Errorf("there is no %q; see -help", name)
		}
	}
	for _, c := range comparisons {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		if err := measure(c, opt); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// measure does one comparison in a folder of its own.
func measure(c comparison, opt options) error {
	dir, err := os.MkdirTemp("", "perlica-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the system's temporary folder
	fmt.Printf("%s (takes about %s)\n", c.name, c.takes)
	return c.do(dir, opt)
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
	if err := build(map[string]string{perlica: "./cmd/perlica", bare: "./cmd/bench/bare"}); err != nil {
		return err
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
		fmt.Printf("%-52s %10.1f %10s %-9s              (at most 20)\n", "  its peak of resident memory", float64(peak)/(1<<20), "", "MB")
	}
	return syncs(command, ours, theirs)
}

// build makes each program of its package, as it is released.
func build(programs map[string]string) error {
	for out, pkg := range programs {
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
		}
	}
	return nil
}
