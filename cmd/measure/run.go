package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// binary returns the size of the released program in bytes.
func (t *tree) binary() (int64, error) {
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "perlica")
	if err := t.build(name, "-trimpath", "-ldflags=-s -w"); err != nil {
		return 0, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (t *tree) build(name string, flags ...string) error {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-o", name}, flags, []string{"./cmd/perlica"})
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = t.dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// insertsEvents is the method of package eventlog that inserts events.
const insertsEvents = "batchWriter.insertRows"

// stack is Go source that the measurement adds to package eventlog. measureStack prints the number of Perlica's own
// stack frames from main to its caller.
const stack = `package eventlog

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

func measureStack() {
	pcs := make([]uintptr, 200)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	n, main := 0, false
	for {
		f, more := frames.Next()
		main = main || f.Function == "main.main"
		if strings.HasPrefix(f.Function, "main.") || strings.HasPrefix(f.Function, "` + module + `") {
			n++
		}
		if !more {
			break
		}
	}
	out, err := os.OpenFile(os.Getenv("MEASURE_FRAMES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil && main {
		out.WriteString(strconv.Itoa(n) + "\n")
		out.Close()
	}
}
`

// frames runs one 'perlica run' and returns the largest number of Perlica's own stack frames between main and an
// insert of events. The measured program counts them in a changed method: go build gets the changed files as an
// overlay.
func (t *tree) frames() (int, error) {
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	name, text, err := t.withCount()
	if err != nil {
		return 0, err
	}
	root, err := filepath.Abs(t.dir)
	if err != nil {
		return 0, err
	}
	changed, added, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "added.go"),
		filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, name):                      changed,
		filepath.Join(root, "eventlog", "measured.go"): added,
	}})
	if err != nil {
		return 0, err
	}
	for name, text := range map[string][]byte{changed: text, added: []byte(stack), overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return 0, err
		}
	}
	program, counts := filepath.Join(dir, "perlica"), filepath.Join(dir, "counts")
	if err := t.build(program, "-overlay="+overlay); err != nil {
		return 0, err
	}
	run := exec.Command(program, "run", "--provider", "predictable", "measured")
	run.Dir = dir
	run.Env = append(os.Environ(), "HOME="+dir, "PERLICA_HOME="+filepath.Join(dir, "home"), "MEASURE_FRAMES="+counts)
	if out, err := run.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("perlica run: %w: %s", err, out)
	}
	numbers, err := os.ReadFile(counts)
	if err != nil {
		return 0, err
	}
	most := 0
	for _, word := range strings.Fields(string(numbers)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// withCount finds the file of package eventlog that inserts events. It returns the file's name, and its text with an
// added call of measureStack.
func (t *tree) withCount() (name string, text []byte, err error) {
	for _, f := range t.all {
		if f.test || filepath.Dir(f.name) != "eventlog" {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && symbol(d) == insertsEvents {
				text, err := os.ReadFile(filepath.Join(t.dir, f.name))
				if err != nil {
					return "", nil, err
				}
				at := t.fset.Position(d.Body.Lbrace).Offset + 1
				return f.name, slices.Insert(text, at, []byte("measureStack();")...), nil
			}
		}
	}
	return "", nil, errors.New("package eventlog has no method " + insertsEvents)
}
