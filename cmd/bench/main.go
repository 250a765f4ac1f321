// Command bench measures Perlica against bare programs. It prints ratios, because absolute figures differ between
// machines. Run it with 'make bench'. docs/performance.md explains the lines.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/perlica/perlica/provider/predictable"
)

// comparison is a named measurement.
type comparison struct {
	name  string
	takes string
	do    func(dir string, opt options)
}

// comparisons lists all comparisons in their order.
var comparisons = []comparison{
	{"process", "2 s", processes},
	{"flood", "3 s", floods},
	{"update", "3 s", singles},
	{"prompt", "2 s", prompts},
	{"warm", "30 s", warm},
	{"editor", "1 minute", editors},
	{"model", "15 s", models},
	{"web", "a minute", webs},
	{"append", "3 s", durable},
	{"group", "10 s", groups},
	{"verify", "20 s", verified},
	{"growth", "2 minutes and 6 GB", growth},
	{"million", "3 minutes and 4 GB", million},
}

// parts are the processes that a comparison starts in addition to Perlica. This program runs as one of them if its
// first argument is the key of that process in the map.
var parts = map[string]func(args []string){
	"agent": func([]string) { agent() },
	"predictable": func([]string) {
		check(predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, predictable.Options{}))
	},
	"proxy":     func(args []string) { proxy(args[0], args[1]) },
	"ask":       func(args []string) { ask(args[0]) },
	"relay":     func(args []string) { relay(args[0]) },
	"followers": func(args []string) { followAll(args[0], args[1]) },
}

// failure is the value of the panic that ends a comparison with an error.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// exitOnFailure exits if a failure ended the current work. The caller defers it.
func exitOnFailure(what *string) {
	switch p := recover().(type) {
	case nil:
	case failure:
		fmt.Fprintln(os.Stderr, *what, p.error)
		os.Exit(1)
	default:
		panic(p)
	}
}

// options are the flags.
type options struct {
	rounds  int
	updates int
	keep    string
	against string
	turns   int
}

func main() {
	what := "bench:"
	defer exitOnFailure(&what)
	if len(os.Args) > 1 {
		if play, ok := parts[os.Args[1]]; ok {
			play(os.Args[2:])
			return
		}
	}
	var opt options
	flag.IntVar(&opt.rounds, "rounds", 40, "how often each process is started")
	flag.IntVar(&opt.updates, "updates", 100_000, "updates in the flood")
	flag.StringVar(&opt.keep, "keep", "",
		"a `folder` for the logs of a million events, which are used again; else they are removed")
	flag.StringVar(&opt.against, "against", "", "a `revision` of git that is measured in turns with this tree")
	flag.IntVar(&opt.turns, "turns", 3, "how often each revision is measured with -against")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [flags] [NAME...]; without a name all of:")
		for _, c := range comparisons {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-10s takes %s\n", c.name, c.takes)
		}
		flag.PrintDefaults()
	}
	flag.Parse()
	for _, name := range flag.Args() {
		if !slices.ContainsFunc(comparisons, func(c comparison) bool { return c.name == name }) {
			check(fmt.Errorf("there is no %q; see -help", name))
		}
	}
	if opt.against != "" {
		dir := must(os.MkdirTemp("", "perlica-bench"))
		defer func() { _ = os.RemoveAll(dir) }() // If this fails, the system removes the folder later.
		compareWith(opt.against, opt.turns, flag.Args(), dir)
		return
	}
	for _, c := range comparisons {
		switch {
		case flag.NArg() == 1 && flag.Arg(0) == c.name:
			what = "bench: " + c.name + ":"
			measure(c, opt)
		case flag.NArg() == 0, flag.NArg() > 1 && slices.Contains(flag.Args(), c.name):
			runInProcess(c.name)
		}
	}
}

// runInProcess runs one comparison in a new process. After a process has started an agent, Perlica treats every
// program of this process like a program of the agent. So each comparison needs a new process.
func runInProcess(name string) {
	var args []string
	flag.Visit(func(f *flag.Flag) { args = append(args, "-"+f.Name+"="+f.Value.String()) })
	cmd := exec.Command(must(os.Executable()), append(args, name)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Run() != nil { // The process has printed the reason.
		os.Exit(1)
	}
}

// measure runs one comparison in a temporary folder.
func measure(c comparison, opt options) {
	dir := must(os.MkdirTemp("", "perlica-bench"))
	defer func() { _ = os.RemoveAll(dir) }() // If this fails, the system removes the folder later.
	fmt.Printf("%s (takes about %s)\n", c.name, c.takes)
	c.do(dir, opt)
}

// ratio prints the line of one comparison.
func ratio(what string, ours, bare float64, unit string, promise string) {
	fmt.Printf("%-52s %10.2f %10.2f %-9s ratio %5.2f  (%s)\n", what, ours, bare, unit, ours/bare, promise)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// processes compares whole processes: perlica run hello, and the bare program.
func processes(dir string, opt options) {
	perlica, bare := filepath.Join(dir, "perlica"), filepath.Join(dir, "bare")
	build(perlica, "./cmd/perlica")
	build(bare, "./cmd/bench/bare")
	project := filepath.Join(dir, "project")
	check(os.Mkdir(project, 0o700))
	command := func(argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = project
		// Only the built-in agent is on PATH.
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(dir, "home")}
		return cmd
	}
	ours := []string{perlica, "run", "--provider", "predictable", "hello"}
	theirs := []string{bare, filepath.Join(project, "bare.db")}
	var a, b []time.Duration
	var peak int64
	for i := range opt.rounds + 2 { // The first two rounds make the files and fill the caches.
		for argv, to := range map[*[]string]*[]time.Duration{&ours: &a, &theirs: &b} {
			cmd := command((*argv)...)
			start := time.Now()
			output(cmd)
			if i < 2 {
				continue
			}
			*to = append(*to, time.Since(start))
			if to == &a {
				peak = max(peak, peakMemory(cmd.ProcessState))
			}
		}
	}
	ratio("perlica run hello, whole process", ms(median(a)), ms(median(b)), "ms", "at most 3.3")
	if peak > 0 {
		fmt.Printf("%-52s %10.1f %10s %-9s              (at most 22)\n", "  its peak of resident memory",
			float64(peak)/(1<<20), "", "MB")
	}
	syncs(command, ours, theirs)
}

// output runs a command and returns its output.
func output(cmd *exec.Cmd) []byte {
	out, err := cmd.CombinedOutput()
	if err != nil {
		check(fmt.Errorf("%v: %w\n%s", cmd.Args, err, out))
	}
	return out
}

// build builds a program from its package with the flags of a release.
func build(out, pkg string) {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output(cmd)
}

var syncLine = regexp.MustCompile(`(?m)\b(fsync|fdatasync)\(`)

// syncs counts the data syncs of both programs with strace, if it is installed.
func syncs(command func(...string) *exec.Cmd, ours, theirs []string) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Printf("%-52s (strace is not installed)\n", "  its data syncs")
		return
	}
	counts := [2]int{}
	for i, argv := range [][]string{ours, theirs} {
		cmd := command(append([]string{strace, "-f", "-e", "trace=fsync,fdatasync"}, argv...)...)
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			check(fmt.Errorf("strace: %w\n%s", err, trace.Bytes()))
		}
		counts[i] = len(syncLine.FindAll(trace.Bytes(), -1))
	}
	fmt.Printf("%-52s %10d %10d %-9s more  %5d  (at most 4)\n", "  its data syncs", counts[0], counts[1], "",
		counts[0]-counts[1])
}
