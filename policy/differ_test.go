package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestDiffers checks that a reported call may write the approved command, path or field in another way, or omit it. Any
// other command, path or field is a difference.
func TestDiffers(t *testing.T) {
	const ls = `{"command":"ls -la"}`
	for _, test := range []struct {
		kind, asked string
		reported    ToolCall
		same        bool
	}{
		{"execute", ls, ToolCall{Kind: "execute", RawInput: json.RawMessage(ls)}, true},
		{"execute", ls, ToolCall{Kind: "execute"}, true},
		{"execute", ls, ToolCall{Title: "ls -la"}, true},
		{"execute", ls, ToolCall{Title: "Listed 3 files"}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls   '-la'","cwd":"/w/proj"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":["/bin/zsh","-lc","ls -la"]}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"/bin/bash -lc 'ls -la'"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls","args":["-la"]}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","timeout":9,"description":"List"}`)},
			true},
		{"execute", ls, ToolCall{Kind: "execute", Locations: []string{"/w/proj"}}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"rm -rf /important"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la; rm x"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"bash -c 'ls -la' > /etc/x"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","args":["/root"]}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","cwd":"/etc"}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","env":{"PATH":"/x"}}`)}, false},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","then":"remove it all"}`)}, false},
		{"execute", ls, ToolCall{Title: "rm -rf /important"}, false},
		{"execute", ls, ToolCall{Title: "rm -rf /important", RawInput: json.RawMessage(ls)}, false},
		{"execute", ls, ToolCall{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Kind: "edit", Locations: []string{"/w/proj/a"}}, true},
		{"edit", `{"path":"a"}`, ToolCall{Title: "a"}, true},
		{"edit", `{"path":"a"}`, ToolCall{RawInput: json.RawMessage(`{"filePath":"/w/proj/./a"}`)}, true},
		{"edit", `{"path":"a"}`, ToolCall{Locations: []string{"/w/proj/b"}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Diffs: []Diff{{Path: "/etc/passwd"}}}, false},
		{"edit", `{"path":"a"}`, ToolCall{Kind: "delete", Locations: []string{"/w/proj/a"}}, false},
		{"read", `{"path":"a"}`, ToolCall{Kind: "execute"}, false},
		{"search", `{"pattern":"x","path":"."}`, ToolCall{Kind: "search", Locations: []string{"/w/proj/b"}}, true},
		{"other", `{"tool":"x"}`, ToolCall{RawInput: json.RawMessage(`{"tool":"y"}`)}, false},
		{"other", `{"tool":"x"}`, ToolCall{RawInput: json.RawMessage(`{"command":"ls"}`)}, false},
		{"other", `{"tool":"x"}`, ToolCall{Kind: "other", Title: "Deleted it",
			RawInput: json.RawMessage(`{"tool":"x"}`)}, true},
		{"execute", ls, ToolCall{RawInput: json.RawMessage(`{"command":"ls -la","sudo":true}`)}, false},
	} {
		asked := ReadToolCall(ToolCall{Kind: test.kind, Title: "ls -la", RawInput: json.RawMessage(test.asked)},
			place)
		why := Differs([]Reading{asked}, test.reported, place)
		if (why == nil) != test.same {
			t.Errorf("%s, then %s %q %v: %q", test.asked, test.reported.RawInput, test.reported.Title,
				test.reported.Locations, why)
		}
	}
}

// TestDiffersInContent checks that an approval counts only for the content that it showed. The reported diff may have
// lines around the approved one, or may be a part of it.
func TestDiffersInContent(t *testing.T) {
	file := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
	changed := "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nTEN\n"
	for _, test := range []struct {
		name     string
		approved []Diff
		made     Diff
		same     bool
	}{
		{"the same", []Diff{{New: "harmless\n"}}, Diff{New: "harmless\n"}, true},
		{"other ends of lines", []Diff{{Old: "a\n", New: "b\nc\n"}}, Diff{Old: "a", New: "b\r\nc"}, true},
		{"lines around it", []Diff{{Old: "two", New: "2"}}, Diff{Old: "one\ntwo\nthree", New: "one\n2\nthree"}, true},
		{"the rest of a line", []Diff{{Old: "b(", New: "c("}}, Diff{Old: "x\na = b()\n", New: "x\na = c()\n"}, true},
		{"two diffs as one", []Diff{{Old: "one", New: "1"}, {Old: "ten", New: "10"}},
			Diff{Old: file, New: "1\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n10\n"}, true},
		{"the first hunk", []Diff{{Old: file, New: changed}}, Diff{Old: "zero\none\ntwo", New: "zero\nONE\ntwo"}, true},
		{"the last hunk", []Diff{{Old: file, New: changed}}, Diff{Old: "ten\nmore", New: "TEN\nmore"}, true},
		{"a hunk of a whole file", []Diff{{New: changed}}, Diff{Old: "one\ntwo", New: "ONE\ntwo"}, true},
		{"a removed text", []Diff{{Old: "two\n", New: ""}}, Diff{Old: "one\ntwo\nthree", New: "one\nthree"}, true},
		{"one of two blocks", []Diff{{Old: "a\nx\nb\ny\n", New: "a\nX\nb\nY\n"}},
			Diff{Old: "b\ny", New: "b\nY"}, true},
		{"an added block before an equal line", []Diff{{Old: "f\n}\ng", New: "f\n}\nh\n}\ng"}},
			Diff{Old: "e\nf\n}\ng", New: "e\nf\n}\nh\n}\ng"}, true},
		{"no content was shown", nil, Diff{New: "anything"}, true},

		{"each place", []Diff{{Old: "x", New: "y"}}, Diff{Old: "x\nz\nx\n", New: "y\nz\ny\n"}, false},
		{"another text", []Diff{{New: "harmless\n"}}, Diff{New: "evil\n"}, false},
		{"another text for an edit", []Diff{{Old: "old", New: "harmless"}}, Diff{Old: "old", New: "evil"}, false},
		{"one more line", []Diff{{New: "harmless\n"}}, Diff{New: "harmless\nevil\n"}, false},
		{"one more change", []Diff{{Old: "two", New: "2"}}, Diff{Old: "one\ntwo\nthree", New: "evil\n2\nthree"}, false},
		{"another place", []Diff{{Old: "two", New: "2"}}, Diff{Old: "check()\n", New: "2"}, false},
		{"an empty file", []Diff{{New: "harmless\n"}}, Diff{Old: "all\n", New: ""}, false},
		{"an emptied file", []Diff{{Old: file, New: changed}}, Diff{Old: file, New: ""}, false},
		{"a removed change", []Diff{{Old: "a\nb\n", New: "a\nB\n"}}, Diff{Old: "b\n", New: ""}, false},
		{"a part of a line", []Diff{{New: "# PermitRootLogin yes\n"}}, Diff{New: "PermitRootLogin yes\n"}, false},
		{"a line of a file", []Diff{{New: "one\ntwo\n"}}, Diff{New: "two\n"}, false},
		{"an added line as a file", []Diff{{Old: "a\nb", New: "a\nx\nb"}}, Diff{New: "x"}, false},
		{"words of a file", []Diff{{New: "deny()\ngrant()\n"}}, Diff{Old: "deny()", New: "grant()"}, false},
		{"words of a diff", []Diff{{Old: "deny()\nx\na", New: "deny()\nx\ngrant()"}},
			Diff{Old: "deny()", New: "grant()"}, false},
		{"a change of another block", []Diff{{Old: "{\ndeny\n}\n{\nx\n}", New: "{\ndeny\n}\n{\ngrant\n}"}},
			Diff{Old: "{\ndeny\n}", New: "{\ngrant\n}"}, false},
		{"another indentation", []Diff{{Old: "a:\n  b", New: "a:\n  b\n    c"}},
			Diff{Old: "  b", New: "  b\n  c"}, false},
		{"a diff with the mark of a patch", []Diff{{New: "harmless\n"}}, Diff{New: "*** Begin Patch\nevil\n"}, false},
		{"a text with the mark of a patch", []Diff{{New: "harmless\n"}},
			Diff{New: "evil\n*** Begin Patch\n"}, false},
		{"a growing text", slices.Repeat([]Diff{{Old: "a", New: "aa"}}, 60), Diff{Old: "a\nx", New: "evil"}, false},
		{"a text that grows at once", slices.Repeat([]Diff{{Old: "a", New: strings.Repeat("a", 30_000)}}, 4),
			Diff{Old: "a\nx", New: "evil"}, false},
		{"too many lines", []Diff{{Old: strings.Repeat("a\nb\n", 1e5), New: strings.Repeat("b\nc\n", 1e5)}},
			Diff{Old: "b", New: "c"}, false},
		{"another file", []Diff{{Path: "/w/proj/b", New: "text\n"}}, Diff{Path: "/w/proj/a", New: "text\n"}, false},
	} {
		for i := range test.approved {
			if test.approved[i].Path == "" {
				test.approved[i].Path = "/w/proj/a"
			}
		}
		test.made.Path = "a"
		locations := []string{"/w/proj/a"}
		asked := ReadToolCall(ToolCall{Kind: "edit", Diffs: test.approved, Locations: locations}, place)
		why := Differs([]Reading{asked}, ToolCall{Kind: "edit", Diffs: []Diff{test.made}, Locations: locations}, place)
		if (why == nil) != test.same {
			t.Errorf("%s: %v", test.name, why)
		}
	}
}

// TestPatchesInContent checks that the input of a reported call must have the approved patch, and that an approved patch
// shows each of its hunks. A text with a line of a patch is not a patch.
func TestPatchesInContent(t *testing.T) {
	const patch = "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+2\n three\n@@\n-nine\n+9\n ten\n*** End Patch"
	input := func(name, text string) ToolCall {
		raw, err := json.Marshal(map[string]string{"file_path": "/w/proj/a", name: text})
		if err != nil {
			t.Fatal(err)
		}
		return ToolCall{Kind: "edit", RawInput: raw}
	}
	edit := func(rest string) ToolCall {
		return ToolCall{Kind: "edit", RawInput: json.RawMessage(
			`{"file_path": "/w/proj/a", "old_string": "x", "new_string": "y"` + rest + `}`)}
	}
	made := func(old, text string) ToolCall {
		return ToolCall{Kind: "edit", Diffs: []Diff{{Path: "/w/proj/a", Old: old, New: text}}}
	}
	for _, test := range []struct {
		name        string
		asked, made ToolCall
		same        bool
	}{
		{"the same patch", input("patch", patch), input("patch", patch), true},
		{"another patch", input("patch", patch), input("patch", strings.ReplaceAll(patch, "+2", "+evil")), false},
		{"the first hunk", input("patch", patch), made("one\ntwo\nthree\n", "one\n2\nthree\n"), true},
		{"both hunks", input("patch", patch), made("one\ntwo\nthree\nnine\nten\n", "one\n2\nthree\n9\nten\n"), true},
		{"another content", input("patch", patch), made("one\ntwo\nthree\n", "one\nevil\nthree\n"), false},
		{"an emptied file", input("patch", patch), made("one\ntwo\nthree\n", ""), false},
		{"a patch of an approved diff", made("one\ntwo\nthree\nnine\nten\n", "one\n2\nthree\n9\nten\n"),
			input("patch", patch), true},
		{"a unified patch of an approved diff", made("one\ntwo\nthree\n", "one\n2\nthree\n"), input("patch",
			"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"), true},
		{"another patch than the approved diff", made("one\ntwo\nthree\nnine\nten\n", "one\n2\nthree\n9\nten\n"),
			input("patch", strings.ReplaceAll(patch, "+9", "+evil")), false},
		{"one place", edit(""), made("x\nz\nx\n", "y\nz\nx\n"), true},
		{"each place without a word about it", edit(""), made("x\nz\nx\n", "y\nz\ny\n"), false},
		{"each place", edit(`, "replace_all": true`), made("x\nz\nx\n", "y\nz\ny\n"), true},
		{"not each place", edit(`, "replaceAll": false`), made("x\nz\nx\n", "y\nz\ny\n"), false},
		{"two places", edit(`, "expected_replacements": 2`), made("x\nz\nx\n", "y\nz\ny\n"), true},
		{"three places of two", edit(`, "expected_replacements": 2`), made("x\nx\nx\n", "y\ny\ny\n"), false},
		{"a text with a line of a patch", input("content", "harmless"),
			input("content", "evil\ndiff --git a/a b/a\n"), false},
		{"a text that begins as a hunk", input("content", "hello\n"), input("content", "@@ evil\n"), false},
		{"a text that begins as a patch", input("content", "hello\n"), input("content", "--- a\n+++ b\nevil\n"), false},
		{"a text that begins as an index", input("content", "hello\n"), input("content", "Index: evil\n"), false},
		{"a patch without a last line feed", input("patch", "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n"+
			"\\ No newline at end of file\n+2\n*** End Patch"), made("one\ntwo", "one\n2\n"), true},
	} {
		why := Differs([]Reading{ReadToolCall(test.asked, place)}, test.made, place)
		if (why == nil) != test.same {
			t.Errorf("%s: %v", test.name, why)
		}
	}
}
