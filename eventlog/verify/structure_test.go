package verify

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/eventlog/store"
)

// TestIndexes checks that the table indexes has each index of the events.
func TestIndexes(t *testing.T) {
	n := 0
	for _, sql := range store.Statements() {
		name := strings.TrimPrefix(strings.Replace(sql, "UNIQUE ", "", 1), "CREATE INDEX ")
		name, columns, ok := strings.Cut(name, " ON entries (")
		if !ok {
			continue
		}
		n++
		known := false
		for _, x := range indexes {
			if x.name == name {
				known = x.unique == strings.Contains(sql, "UNIQUE") && (x.column == 0) == strings.HasPrefix(columns, "seq")
			}
		}
		if !known {
			t.Errorf("the index %s is unknown or another one", name)
		}
	}
	if n != len(indexes) {
		t.Errorf("there are %d indexes, want %d", n, len(indexes))
	}
}
