package frame

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodesInOnePlace checks that only exitcode.go turns a number into an exit code or makes an exitError.
func TestCodesInOnePlace(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if name == filepath.Join("..", "frame", "exitcode.go") {
			return nil
		}
		if filepath.Dir(name) == filepath.Join("..", "builtin") {
			// The built-in agent's process is an exception. It ends before any package of the front end is
			// initialised.
			return nil
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
				switch nameOf(n.Type) {
				case "ExitError", "frame.ExitError":
					made = "a literal of ExitError"
				}
			case *ast.CallExpr:
				switch nameOf(n.Fun) {
				case "ExitCode", "frame.ExitCode":
					made = "a conversion to ExitCode"
				case "os.Exit":
					if _, literal := n.Args[0].(*ast.BasicLit); literal {
						made = "os.Exit with a number"
					}
				}
			}
			if made != "" {
				t.Errorf("%s: got %s, want it in exitcode.go alone", fset.Position(n.Pos()), made)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("got %d files, want at least 50", files)
	}
}

// nameOf returns the text of a name, such as ExitCode, frame.ExitCode or os.Exit. For any other expression it
// returns "".
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	}
	return ""
}
