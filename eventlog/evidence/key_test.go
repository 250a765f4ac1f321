package evidence

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// testKeys makes keys in a new folder.
func testKeys(t testing.TB) *Keys {
	t.Helper()
	k, err := MakeKeys(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "keys")
	if k, err := ReadKeys(dir); err != nil || len(k.VerifierKeys("x")) != 0 {
		t.Fatalf("before there are any: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the folder: %v", err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			k := UseKeys(dir)
			if err := k.Ready(); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[k.VerifierKeys("perlica/x")[0]] = true
		})
	}
	all.Wait()
	if len(seen) != 1 {
		t.Errorf("%d pairs were made at first use", len(seen))
	}
	fi, err := os.Stat(KeyPath(dir))
	if err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", fi.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("beside the key lie %v", left)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	public := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, text := range map[string]string{
		"empty": "", "another file": "-----BEGIN PRIVATE KEY-----\n", "no key": keyHeader + "\n",
		"cut":         keyHeader + "\nprivate " + public[:20] + "\n",
		"two":         keyHeader + "\nprivate " + public + "\nprivate " + public + "\n",
		"no private":  keyHeader + "\nretired " + public + "\n",
		"a word more": keyHeader + "\nprivate " + public + "\nfriend " + public + "\n",
		"zeros":       strings.Repeat("\x00", 100),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(KeyPath(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"Ready": UseKeys(dir).Ready(), "RotateKeys": second(RotateKeys(dir)),
			"ReadKeys": second(ReadKeys(dir))} {
			if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), KeyPath(dir)) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if b, err := os.ReadFile(KeyPath(dir)); string(b) != text || err != nil {
			t.Errorf("%s: the file was changed: %q, %v", name, b, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestKeysOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing")
	}
	dir := t.TempDir()
	if _, err := MakeKeys(dir); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(KeyPath(dir), mode); err != nil {
			t.Fatal(err)
		}
		if err := UseKeys(dir).Ready(); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "others may read") {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

// TestKeysWithoutAPlace checks the error if the folder of the keys cannot be made, because a file is in its place.
func TestKeysWithoutAPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "keys")} {
		if err := UseKeys(dir).Ready(); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for n := range 4 { // the first call makes the pair
		k, err := RotateKeys(dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadKeys(dir)
		if err != nil {
			t.Fatal(err)
		}
		list := again.VerifierKeys("perlica/x")
		if fmt.Sprint(list) != fmt.Sprint(k.VerifierKeys("perlica/x")) || len(list) != n+1 ||
			fmt.Sprint(list[1:]) != fmt.Sprint(names) {
			t.Fatalf("rotation %d: %v behind %v", n, list, names)
		}
		names = list
	}
	busy := filepath.Join(dir, rotateFile)
	if err := os.WriteFile(busy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateKeys(dir); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), busy) {
		t.Errorf("a rotation beside another: %v", err)
	}
	if _, err := os.Stat(busy); err != nil {
		t.Errorf("the other's mark: %v", err)
	}
}

// TestRotationsAtOnce checks concurrent rotations. If a rotation returned a key as the current key, that key must not
// be lost.
func TestRotationsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var made []string
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			k, err := RotateKeys(dir)
			if err != nil {
				if !errors.Is(err, ErrKey) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, k.VerifierKeys("perlica/x")...)
		})
	}
	all.Wait()
	k, err := ReadKeys(dir)
	if err != nil || len(made) == 0 {
		t.Fatal(len(made), err)
	}
	known := strings.Join(k.VerifierKeys("perlica/x"), " ")
	for _, m := range made {
		if !strings.Contains(known, m) {
			t.Errorf("lost: %s", m)
		}
	}
}

// TestVerifierKeysAreWhatOthersRead checks that golang.org/x/mod accepts the verifier keys and can verify a
// checkpoint with them.
func TestVerifierKeysAreWhatOthersRead(t *testing.T) {
	k := testKeys(t)
	s, err := k.Signer("perlica/x")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: "hello\n"}, s)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(k.VerifierKeys("perlica/x")[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(msg, note.VerifierList(v)); err != nil {
		t.Error(err)
	}
	if _, err := note.Open(msg, note.VerifierList(k.Verifiers("perlica/y")...)); err == nil {
		t.Error("the key of another log's name verifies")
	}
	if len(VerifierKey("x", ed25519.PublicKey("short"))) != 0 {
		t.Error("a short key")
	}
}
