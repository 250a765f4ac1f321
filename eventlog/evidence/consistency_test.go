package evidence

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A tree has all hashes of a log's tree, by their storage index.
type tree []tlog.Hash

func (h tree) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, x := range indexes {
		list = append(list, h[x])
	}
	return list, nil
}

// history returns a tree, the verifiers of its log, and a signed checkpoint after every tenth leaf.
func history(t *testing.T) (h tree, known []note.Verifier, list []Checkpoint) {
	t.Helper()
	const name = "perlica/0199aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
	k := testKeys(t)
	s, err := k.Signer(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(300) {
		more, err := tlog.StoredHashes(n, fmt.Append(nil, n), h)
		if err != nil {
			t.Fatal(err)
		}
		if h = append(h, more...); n%10 != 9 {
			continue
		}
		c := Checkpoint{Origin: name, Size: n + 1}
		if c.Root, err = tlog.TreeHash(c.Size, h); err != nil {
			t.Fatal(err)
		}
		msg, err := note.Sign(&note.Note{Text: c.Text()}, s)
		if err != nil {
			t.Fatal(err)
		}
		c.Note = string(msg)
		list = append(list, c)
	}
	return h, k.Verifiers(name), list
}

func TestConsistencyProofsThatProveNothing(t *testing.T) {
	h, known, list := history(t)
	path, err := tlog.ProveTree(list[20].Size, list[4].Size, h)
	if err != nil {
		t.Fatal(err)
	}
	p := ConsistencyProof{Old: list[4], New: list[20], Path: path}
	if by, err := p.Verify(known...); err != nil || len(by) != 1 {
		t.Fatal(by, err)
	}
	b, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for name, tc := range map[string]struct{ text, why string }{
		"a hash less":    {strings.Replace(good, p.Path[0].String()+"\n", "", 1), "does not hold"},
		"old is another": {strings.Replace(good, list[4].Note, list[5].Note, 1), "does not hold"},
		"new is another": {strings.Replace(good, list[20].Note, list[21].Note, 1), "does not hold"},
		"old signature": {strings.Replace(good, list[4].Note[len(list[4].Text()):], list[5].Note[len(list[5].Text()):],
			1), "does not hold"},
		"new signature": {strings.Replace(good, list[20].Note[len(list[20].Text()):],
			list[5].Note[len(list[5].Text()):], 1), "does not hold"},
		"two logs":            {strings.Replace(good, list[4].Origin, "perlica/x", 1), "two logs"},
		"one checkpoint":      {strings.Replace(good, "\n"+list[20].Note, "", 1), "no two checkpoints"},
		"new without its end": {strings.TrimSuffix(good, "\n"), "the later one"},
		"another kind":        {strings.Replace(good, "proof 1", "proof 2", 1), "does not begin"},
	} {
		if tc.text == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		got, err := ParseConsistencyProof(tc.text)
		if err == nil {
			_, err = got.Verify(known...)
		}
		if !errors.Is(err, ErrProof) || !strings.Contains(err.Error(), tc.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseConsistencyProof(f *testing.F) {
	hash := tlog.RecordHash(nil).String()
	n := "perlica/x\n7\n" + hash + "\n\n— perlica/x AAAAAAAA\n"
	f.Add(ConsistencyHeader + "\n" + hash + "\n\n" + n + "\n" + n)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseConsistencyProof(text)
		if err != nil {
			if !errors.Is(err, ErrProof) {
				t.Error(err)
			}
			return
		}
		if again, err := p.MarshalText(); err != nil || string(again) != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
	})
}
