package perlica_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// harness is a group of commands that tests use. A README.md lists the commands.
type harness struct {
	readme, title, intro string
	// commands returns the function of each command, by the command's name.
	commands func(list []source) map[string]*ast.FuncDecl
}

var harnesses = []harness{
	{
		"cmd/perlica/testdata/script/README.md", "The commands of the scripts",
		"A script is a test of the built program. These commands come on top of those of testscript.",
		scriptCommands,
	},
	{
		"service/README.md", "The world of the tests of package service",
		"A world is a project on disk with bridges and people. These are the functions of `w`, a world.",
		func(list []source) map[string]*ast.FuncDecl { return worldFunctions(list, "service") },
	},
	{
		"service/web/README.md", "The world of the tests of package web",
		"A world is a server with its projects. These are the functions of `w`, a world.",
		func(list []source) map[string]*ast.FuncDecl { return worldFunctions(list, "service/web") },
	},
}

// scriptCommands returns the functions in the map scriptCommands of cmd/perlica, by the names of the commands.
func scriptCommands(list []source) map[string]*ast.FuncDecl {
	functions, commands := map[string]*ast.FuncDecl{}, map[string]*ast.FuncDecl{}
	inTests(list, "cmd/perlica", func(f *ast.FuncDecl) { functions[f.Name.Name] = f })
	for _, s := range list {
		if !s.test || s.dir != "cmd/perlica" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			var key, value ast.Expr
			switch n := n.(type) {
			case *ast.KeyValueExpr: // This is a row of the map.
				key, value = n.Key, n.Value
			case *ast.AssignStmt: // An init function adds a row to the map.
				if index, ok := n.Lhs[0].(*ast.IndexExpr); ok {
					key, value = index.Index, n.Rhs[0]
				}
			}
			name, isName := key.(*ast.BasicLit)
			function, isFunction := value.(*ast.Ident)
			if isName && isFunction && name.Kind == token.STRING && strings.HasPrefix(function.Name, "cmd") {
				command, _ := strconv.Unquote(name.Value)
				commands[command] = functions[function.Name]
			}
			return true
		})
	}
	return commands
}

// worldFunctions returns the methods of the type world that the tests of a folder declare.
func worldFunctions(list []source, dir string) map[string]*ast.FuncDecl {
	functions := map[string]*ast.FuncDecl{}
	inTests(list, dir, func(f *ast.FuncDecl) {
		if receiver(f) == "world" {
			functions["w."+f.Name.Name] = f
		}
	})
	return functions
}

func inTests(list []source, dir string, do func(f *ast.FuncDecl)) {
	for _, s := range list {
		if !s.test || s.dir != dir {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				do(f)
			}
		}
	}
}

// TestHarnesses compares the README.md of each harness with the commands. The README.md describes a command by the
// first sentence of the comment on its function.
func TestHarnesses(t *testing.T) {
	for _, h := range harnesses {
		commands := h.commands(sources(t))
		if len(commands) < 10 {
			t.Fatalf("%s: got %d commands, want at least 10", h.readme, len(commands))
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "# %s\n\n%s\n\n| command | effect |\n|---|---|\n", h.title, h.intro)
		for _, name := range slices.Sorted(maps.Keys(commands)) {
			effect := effectOf(commands[name])
			if effect == "" {
				t.Errorf("%s: got no comment on %s, want a sentence that begins with its name", h.readme, name)
			}
			fmt.Fprintf(&text, "| `%s` | %s |\n", name, effect)
		}
		if *update {
			if err := os.WriteFile(h.readme, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if page, err := os.ReadFile(h.readme); err != nil || !bytes.Equal(page, text.Bytes()) {
			t.Errorf("%s differs from the comments on its commands (%v). Run: go test . -update", h.readme, err)
		}
	}
}

// effectOf returns the first sentence of the comment on a function, without the function's name.
func effectOf(f *ast.FuncDecl) string {
	if f == nil {
		return ""
	}
	doc := strings.Join(strings.Fields(f.Doc.Text()), " ")
	effect, ok := strings.CutPrefix(doc, f.Name.Name+" ")
	if !ok {
		return ""
	}
	for _, end := range []string{". ", ": "} {
		effect, _, _ = strings.Cut(effect, end)
	}
	return strings.TrimRight(effect, ".:")
}
