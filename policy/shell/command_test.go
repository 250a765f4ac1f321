package shell

import "testing"

func TestCanonical(t *testing.T) {
	equal := [][2]string{
		{"git status", " git\tstatus # x"}, {"a 'b c'", `a "b c"`}, {"a b", `\a $'b'`}, {"a && b", "a  &&\n b"},
		{"a; b", "a\nb"}, {"rm '*'", `rm \*`},
	}
	for _, pair := range equal {
		x, _ := Command{Text: pair[0]}.Canonical()
		if y, ok := (Command{Text: pair[1]}).Canonical(); !ok || x != y {
			t.Errorf("%q and %q: got %q %q; want ok && x == %v", pair[0], pair[1], x, y, y)
		}
	}
	different := [][2]string{
		{"rm *", "rm '*'"}, {"a ~", "a '~'"}, {"a $X", "a '$X'"}, {"a $X", `a "$X"`}, {"a; b", "a && b"}, {"a b",
			"'a b'"},
		{"X=1 a", "'X=1' a"}, {"cat <<A\n$X\nA", "cat <<'A'\n$X\nA"}, {"{a,b}", "'{a,b}'"}, {"a | b", "a |& b"}, {"a",
			"! a"},
	}
	for _, pair := range different {
		x, okX := Command{Text: pair[0]}.Canonical()
		if y, ok := (Command{Text: pair[1]}).Canonical(); !ok || !okX || x == y {
			t.Errorf("%q and %q: got %q %q; want ok && okX && x != y", pair[0], pair[1], x, y)
		}
	}
}
