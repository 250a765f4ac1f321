package provider_test

import (
	"strings"
	"testing"

	"github.com/perlica/perlica/provider"
)

// TestKey checks that two spellings of one value have the same key, and two values have different keys.
func TestKey(t *testing.T) {
	groups := [][]string{
		{`"a"`, `"\u0061"`},
		{`"A"`, `"\u0041"`},
		{`"a/b"`, `"a\/b"`},
		{`"\\"`, `"\u005c"`},
		{`"\""`, `"\u0022"`},
		{`"\\ud800"`, `"\u005cud800"`},
		{`"\ud800"`},
		{`"\ud801"`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"😀"`, `"\ud83d\ude00"`},
		{`"1"`},
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1E+1`, `1.00`},
		{`0`, `-0`, `0.0`, `0e9`},
		{`-1`, `-1.0`},
		{`10`, `1e1`, `10.0`},
		{`1e400`, "1" + strings.Repeat("0", 400)},
		{`1e401`},
		{`9007199254740993`, `9007199254740993.0`},
		{`9007199254740992`},
		{`1.5`, `15e-1`},
		{`1e99999999999999999999`},
		{`1e99999999999999999998`},
	}
	seen := map[string]int{}
	for i, group := range groups {
		for _, id := range group {
			key := provider.IDKey(id)
			if provider.IDKey(group[0]) != key {
				t.Errorf("%s and %s: got %s and %s; want provider.IDKey(group[0]) == %v",
					group[0], id, provider.IDKey(group[0]), key, key)
			}
			if other, ok := seen[key]; ok && other != i {
				t.Errorf("%s has the key of %s: %s", id, groups[other][0], key)
			}
			seen[key] = i
		}
	}
	for _, line := range []string{`{"id":1.0,"result":1}`, `{"id":1,"method":"m"}`} {
		if m := provider.ParseMessage([]byte(line)); m.Key != "1" {
			t.Errorf("%s: key %s", line, m.Key)
		}
	}
}
