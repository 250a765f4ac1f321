package exitcode

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodesInOnePlace: no other package of the command makes an exit code or an Error of its own.
func TestCodesInOnePlace(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || filepath.Dir(name) == filepath.Join("..", "exitcode") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if filepath.Dir(name) == filepath.Join("..", "builtin") {
			return nil // the agent's own process, which imports nothing of the command
		}
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			made := ""
			switch n := n.(type) {
			case *ast.CompositeLit:
				made = selected(n.Type, "exitcode", "Error")
			case *ast.CallExpr:
				made = selected(n.Fun, "exitcode", "Code")
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && selected(sel, "os", "Exit") != "" && len(n.Args) == 1 {
					if _, literal := n.Args[0].(*ast.BasicLit); literal {
						made = "os.Exit of a number"
					}
				}
			}
			if made != "" {
				t.Errorf("%s: %s", fset.Position(n.Pos()), made)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}

// selected returns pkg.name if that is what e names.
func selected(e ast.Expr, pkg, name string) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return ""
	}
	if id, ok := sel.X.(*ast.Ident); !ok || id.Name != pkg {
		return ""
	}
	return pkg + "." + name
}
