// Command measure counts figures of the tree's structure in the source and prints them as a table. Run it with 'make
// measure'.
//
// It only counts. The tests in layout_test.go and ratchet_test.go set the limits. Product code is the code of the
// program. Test files, packages that serve only tests, cmd/bench and cmd/measure are not part of it.
package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func measure() error {
	t, err := load(".")
	if err != nil {
		return err
	}
	edges, floors, chain := t.imports()
	row("packages", "%d", len(t.product))
	row("import edges", "%d", edges)
	row("floors", "%d", floors)
	row("longest chain of imports", "%s", strings.Join(chain, " → "))
	if frames, err := t.frames(); err != nil {
		row("frames from main to an insert of run", "not measured: %v", err)
	} else {
		row("frames from main to an insert of run", "%d", frames)
	}
	t.printFunctions()
	t.printLines()
	t.printNames()
	size, err := t.binary()
	if err != nil {
		return err
	}
	row("stripped binary, MB", "%.1f", float64(size)/1e6)
	return nil
}

func row(name, format string, args ...any) {
	fmt.Printf("%-44s %s\n", name, fmt.Sprintf(format, args...))
}

// printFunctions prints the unexported functions that the product uses once, and the functions with the most
// decisions.
func (t *tree) printFunctions() {
	functions, once, short := t.usedOnce()
	row("functions", "%d", functions)
	row("unexported and used once", "%d (%d %%)", once, percent(once, functions))
	row("of these of five lines or fewer", "%d (%d %%)", short, percent(short, functions))

	all := map[string]int{}
	for _, p := range t.product {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					all[p.path+"."+symbol(d)] = complexity(d)
				}
			}
		}
	}
	byFigure := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b))
	})
	above := func(n int) (count int) {
		for _, c := range all {
			if c > n {
				count++
			}
		}
		return count
	}
	row("functions of complexity over 15, 20, 25", "%d, %d, %d", above(15), above(20), above(25))
	for _, name := range byFigure[:min(10, len(byFigure))] {
		row("", "%d %s", all[name], name)
	}
}

func percent(part, whole int) int { return (100*part + whole/2) / max(whole, 1) }

// symbol returns the name of a function after the name of its receiver's type.
func symbol(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	name := d.Name.Name
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok {
			name = id.Name + "." + d.Name.Name
		}
		return !ok && name == d.Name.Name
	})
	return name
}

// complexity returns the function's cyclomatic complexity by McCabe, with && and || counted. A case with a single
// statement is like a row of a table, so it adds nothing.
func complexity(d *ast.FuncDecl) int {
	n := 1
	ast.Inspect(d, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil && len(node.Body) > 1 {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if op := node.Op.String(); op == "&&" || op == "||" {
				n++
			}
		}
		return true
	})
	return n
}

// printLines prints the lines of code by top-level folder, and the long lines of all Go files.
func (t *tree) printLines() {
	byRoom, code := map[string]int{}, 0
	for _, p := range t.product {
		room, _, _ := strings.Cut(p.path, "/")
		for _, f := range p.files {
			byRoom[room] += f.code
			code += f.code
		}
	}
	row("lines of code of the product", "%d", code)
	for _, room := range slices.Sorted(maps.Keys(byRoom)) {
		row("", "%d %s", byRoom[room], room)
	}
	var product, tests [2]int
	for _, f := range t.all {
		counts := &product
		if f.test {
			counts = &tests
		}
		for i, most := range []int{120, 160} {
			for _, columns := range f.columns {
				if columns > most {
					counts[i]++
				}
			}
		}
	}
	row("lines over 120, 160 columns", "%d, %d (in tests %d, %d more)", product[0], product[1], tests[0], tests[1])
}

// printNames prints the exported names of the product, and the names that no other package uses.
func (t *tree) printNames() {
	exported, unused := t.exported()
	row("exported package-level names", "%d", exported)
	row("used by no other package, not in api.txt", "%d", len(unused))
	if len(os.Args) > 1 && os.Args[1] == "-unused" {
		for _, name := range unused {
			row("", "%s", name)
		}
	}
}
