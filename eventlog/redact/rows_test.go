package redact

import (
	"slices"
	"strings"
	"testing"
)

// TestRows checks that the example of each row has the row's verdict. Without the row, the verdict must differ, so
// the row is needed.
func TestRows(t *testing.T) {
	for name, rows := range map[string]*[]row{
		"quotedRows": &quotedRows, "bareRows": &bareRows, "spacedRows": &spacedRows,
		"spacedQuotedRows": &spacedQuotedRows, "argumentRows": &argumentRows, "codeRows": &codeRows,
	} {
		all := *rows
		for i, r := range all {
			got := Text(r.example)
			if strings.Contains(got, redacted) != (r.secret || strings.Contains(r.example, redacted)) {
				t.Errorf("%s: %s: got %q for %q, want a mask: %t", name, r.kind, got, r.example, r.secret)
			}
			if got == r.example && r.secret {
				t.Errorf("%s: %s: got %q unchanged, want a mask", name, r.kind, got)
			}
			checkRedact(t, r.example)
			*rows = slices.Delete(slices.Clone(all), i, i+1)
			if without := Text(r.example); without == got {
				t.Errorf("%s: %s: got %q also without the row, want another result", name, r.kind, got)
			}
			*rows = all
		}
	}
}

// TestLooks checks that the row of each example decides whether the example is masked.
func TestLooks(t *testing.T) {
	all := looks
	defer func() { looks = all }()
	for i, l := range all {
		looks = all
		got := Text(l.example)
		looks = slices.Delete(slices.Clone(all), i, i+1)
		if without := Text(l.example); without == got {
			t.Errorf("row %d: got %q also without the row, want another result", i, got)
		}
	}
}

// TestReferences checks that the example of each row stays unchanged. Without the row, the example must be masked.
func TestReferences(t *testing.T) {
	all := references
	defer func() { references = all }()
	for i, r := range all {
		references = all
		text := `password = "` + r.example + `"`
		if got := Text(text); got != text {
			t.Errorf("%s: got %q, want it unchanged", r.kind, got)
		}
		references = slices.Delete(slices.Clone(all), i, i+1)
		if got := Text(text); got == text {
			t.Errorf("%s: got %q also without the row, want a mask", r.kind, got)
		}
	}
}
