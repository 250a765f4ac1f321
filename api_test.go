package perlica_test

import (
	"flag"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"rewrite docs/api.txt, docs/json.txt, testdata/imports.txt and the README.md of each harness")

// public are the packages that other programs may import. docs/library.md names them.
var public = []string{
	"eventlog",
	"eventlog/event",
	"eventlog/store",
	"interaction",
	"kernel",
	"kernel/agents",
	"kernel/fact",
	"kernel/project",
	"kernel/record",
	"kernel/report",
	"kernel/sessions",
	"kernel/streamjson",
	"policy",
	"provider",
}

// TestAPI compares the exported names of the public packages with docs/api.txt. Each change of the API is then
// visible in the diff of this file.
func TestAPI(t *testing.T) {
	byDir := map[string][]string{}
	for _, s := range sources(t) {
		if !s.test && slices.Contains(public, s.dir) {
			byDir[s.dir] = append(byDir[s.dir], exported(s.ast)...)
		}
	}
	var b strings.Builder
	b.WriteString("# The exported names. Written by: go test . -update\n")
	for _, dir := range public {
		b.WriteString("\n" + dir + "\n")
		names := byDir[dir]
		slices.Sort(names)
		for _, n := range slices.Compact(names) { // Files for several systems declare the same name.
			b.WriteString("\t" + n + "\n")
		}
	}
	library, err := os.ReadFile(filepath.Join("docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range public {
		if !strings.Contains(string(library), "`"+dir+"`") {
			t.Errorf("docs/library.md does not name `%s`", dir)
		}
	}
	compareFile(t, filepath.Join("docs", "api.txt"), b.String())
}

// compareFile reports the lines that are not in both the file and the text. With -update it writes the file.
func compareFile(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text == string(old) {
		return
	}
	was, is := strings.Split(string(old), "\n"), strings.Split(text, "\n")
	for _, l := range is {
		if !slices.Contains(was, l) {
			t.Errorf("new: %s", strings.TrimSpace(l))
		}
	}
	for _, l := range was {
		if !slices.Contains(is, l) {
			t.Errorf("gone: %s", strings.TrimSpace(l))
		}
	}
	t.Errorf("%s: run go test . -update, and look at the diff", name)
}

// exported returns the exported names of a file, each as one line of docs/api.txt.
func exported(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if recv := receiver(d); d.Name.IsExported() && (recv == "" || ast.IsExported(recv)) {
				if recv != "" {
					recv += "."
				}
				names = append(names, "func "+recv+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, exportedSpec(d.Tok, spec)...)
			}
		}
	}
	return names
}

func exportedSpec(tok token.Token, spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			if n.IsExported() {
				names = append(names, tok.String()+" "+n.Name)
			}
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		names = append(names, "type "+spec.Name.Name)
		var members *ast.FieldList
		switch x := spec.Type.(type) {
		case *ast.StructType:
			members = x.Fields
		case *ast.InterfaceType:
			members = x.Methods
		default:
			return names
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				if n.IsExported() {
					names = append(names, "type "+spec.Name.Name+"."+n.Name)
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method belongs to. For a function it returns "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	switch g := x.(type) {
	case *ast.IndexExpr:
		x = g.X
	case *ast.IndexListExpr:
		x = g.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
