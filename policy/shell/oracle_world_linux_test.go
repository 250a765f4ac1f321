package shell

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// world has every file that exists before a command, except the links to the tools. The keys are paths.
var world = map[string]string{
	"/etc/hosts": "127.0.0.1 localhost\n", "/etc/app/app.conf": "k=1\n", "/etc/motd": "hi\n",
	"/usr/share/doc/readme": "r\n", "/usr/include/x.h": "h\n",
	"/var/lib/app/data": "d\n", "/var/log/app.log": "l\n", "/opt/app/conf": "c\n", "/srv/www/index": "www\n",
	"/root/notes": "n\n", "/home/you/letter": "y\n",
	"/home/me/.bashrc": "b\n", "/home/me/.ssh/id": "s\n", "/home/me/docs/cv": "cv\n", "/home/me/photo": "p\n",
	"/home/me/work/plan": "w\n", "/home/me/work/other/main.c": "main\n", "/home/me/work/other/.hidden": "o\n",
	"/home/me/work/proj/a": "kaa\n", "/home/me/work/proj/b.txt": "kbb\n", "/home/me/work/proj/src/x.go": "package x\n",
	"/home/me/work/proj/build/x.o": "obj\n", "/home/me/work/proj/.git/HEAD": "ref\n",
	"/home/me/work/proj/.env": "A=1\n",
	"/tmp/t/scratch":          "t\n", "/dev/null": "",
}

var links = map[string]string{
	"/bin": "/tools/bin", "/sbin": "/tools/bin", "/usr/bin": "/tools/bin", "/lib": "/tools/lib", "/lib64": "/tools/lib",
	"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
	"/dev/stderr": "/proc/self/fd/2",
}

// kept are the mounted directories. The warden does not remove or compare files in them.
var kept = []string{"/tools", "/proc"}

// rebuildWorld removes all files that the last command left, and creates the files of world.
func (w *warden) rebuildWorld() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(kept, "/"+e.Name()) {
			continue
		}
		if err := os.RemoveAll("/" + e.Name()); err != nil {
			return err
		}
	}
	for name, text := range world {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, name); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod("/", 0o755), w.chownWorld())
}

// chownWorld gives all files to the user of the commands, so that no command fails for lack of rights.
func (w *warden) chownWorld() error {
	return walk(func(name string, _ fs.FileInfo) error { return os.Lchown(name, w.Owner, w.Owner) })
}

// walk calls the function f for every file outside the mounted directories.
func walk(f func(name string, info fs.FileInfo) error) error {
	return filepath.WalkDir("/", func(name string, e fs.DirEntry, err error) error {
		if slices.Contains(kept, name) {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return f(name, info)
	})
}

// snapshot maps every path to its mode and content.
func snapshot() (map[string]string, error) {
	all := map[string]string{}
	err := walk(func(name string, info fs.FileInfo) error {
		all[name] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			all[name] += fmt.Sprintf(" %x", sha256.Sum256(data))
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			all[name] += " " + to
			return err
		}
		return nil
	})
	return all, err
}

// changed lists the files that differ between two snapshots, outside the working directory and /tmp.
func changed(before, after map[string]string) []string {
	var names []string
	ours := func(name string) bool {
		return within(at.Dir, name) || within("/tmp", name) && name != "/tmp" || name == "/dev/null"
	}
	for name, was := range before {
		if after[name] != was && !ours(name) {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok && !ours(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// guardedDirs are the protected directories: Judge refuses a command that removes everything in one of them.
var guardedDirs = []string{"/", "/etc", "/usr", "/home", "/home/me", "/home/me/work", "/home/me/work/proj"}

// gone lists the directories of guardedDirs that lost all their files. A file is lost if its content exists at no path,
// so a moved file is not lost. All files of world have different contents.
func gone(before, after map[string]string) []string {
	var names []string
	still := map[string]bool{}
	for _, is := range after {
		still[content(is)] = true
	}
	for _, dir := range guardedDirs {
		left := 0
		for name, was := range before {
			if c := content(was); c != "" && within(dir, name) && !within("/dev", name) && still[c] {
				left++
			}
		}
		if left == 0 {
			names = append(names, dir)
		}
	}
	return names
}

// content returns the content of a regular file in a value of snapshot, without the mode.
func content(state string) string {
	if !strings.HasPrefix(state, "-") {
		return ""
	}
	_, sum, _ := strings.Cut(state, " ")
	return sum
}
