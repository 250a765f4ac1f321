package perlica_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestExportedNamesAreUsed checks that each exported name has a use outside of its package. A name counts as used if
// another package mentions it, or mentions another name of the same declaration. It also counts as used if an
// exported declaration of its own package contains it. All names of the packages in docs/api.txt count as used.
func TestExportedNamesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for local, p := range s.imports(t) {
			if dir, ours := strings.CutPrefix(p, module+"/"); ours {
				for _, name := range s.uses(local) {
					used[dir+"."+name] = true
				}
			}
		}
		for _, name := range contained(s.ast) {
			used[s.dir+"."+name] = true
		}
	}
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" || slices.Contains(public, s.dir) {
			continue
		}
		for _, d := range s.ast.Decls {
			names := exported(&ast.File{Decls: []ast.Decl{d}})
			unused := slices.DeleteFunc(slices.Clone(names), func(line string) bool {
				_, name, _ := strings.Cut(line, " ")
				return strings.Contains(name, ".") || used[s.dir+"."+name]
			})
			if group, ok := d.(*ast.GenDecl); ok && (group.Tok == token.CONST || group.Tok == token.VAR) &&
				len(unused) < len(names) {
				continue
			}
			for _, name := range unused {
				if s.dir == "eventlog/redact" && name == "func Text" {
					continue // This is the package's only function. Other packages mask texts with a Redactor.
				}
				t.Errorf("%s: no other package uses the %s; delete or unexport it", s.name, name)
			}
		}
	}
}

// contained returns the identifiers in the types of a file's exported declarations. Other packages can use values of
// these types without naming the types.
func contained(f *ast.File) (names []string) {
	add := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				names = append(names, n.Name)
			case *ast.Field: // Unexported fields of a struct do not count.
				return n.Names == nil || slices.ContainsFunc(n.Names, (*ast.Ident).IsExported)
			}
			return true
		})
	}
	addFields := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			add(field.Type)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if recv := receiver(d); d.Name.IsExported() && (recv == "" || ast.IsExported(recv)) {
				addFields(d.Type.Params)
				addFields(d.Type.Results)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					add(spec.Type)
				}
			}
		}
	}
	return names
}
