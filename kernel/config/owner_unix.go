//go:build unix

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// owner returns the owner of a file. ok is false if the owner is unknown.
func owner(info fs.FileInfo, err error) (uid uint32, ok bool) {
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}

// isMine reports whether a uid is the uid of this process, of root, or of the owner of home.
func isMine(uid uint32, home string) bool {
	if uid == 0 || int64(uid) == int64(os.Geteuid()) {
		return true
	}
	h, ok := owner(os.Stat(home))
	return ok && uid == h
}

// isOwn reports whether path and its link target belong to this user or to root.
func isOwn(path, home string) bool {
	link, ok := owner(os.Lstat(path))
	if !ok || !isMine(link, home) {
		return false
	}
	target, ok := owner(os.Stat(path))
	return !ok || isMine(target, home)
}

// haveOneOwner reports whether two files belong to the same user.
func haveOneOwner(a, b string) bool {
	first, ok := owner(os.Lstat(a))
	second, also := owner(os.Stat(b))
	return ok && also && first == second
}

// isForeign reports whether a workspace may be a trap: another user could have left it to receive this user's record. A
// workspace of root or of the owner of home is no trap. Root works in checkouts of other users, but not in directories
// such as /tmp, in which everyone can leave a workspace.
func isForeign(path, home string) bool {
	w, ok := owner(os.Stat(path))
	if home == "" || !ok || w == 0 {
		return isLeft(path)
	}
	h, ok := owner(os.Stat(home))
	return ok && h != 0 && h != w || isLeft(path)
}

// isLeft reports whether path lies in a directory such as /tmp and belongs neither to root nor to this process's
// user.
func isLeft(path string) bool {
	dir, err := os.Stat(filepath.Dir(path))
	uid, ok := owner(os.Lstat(path))
	return err == nil && ok && dir.Mode()&fs.ModeSticky != 0 && dir.Mode().Perm()&0o002 != 0 &&
		uid != 0 && int64(uid) != int64(os.Geteuid())
}

// distrusted returns the reason to skip a workspace above the work tree. It accepts a folder that the user's own
// group can write to, because a umask of 002 makes such folders.
func distrusted(path, home string) string {
	if !isOwn(path, home) {
		return "belongs to another user"
	}
	info, err := os.Stat(path)
	if err != nil {
		return "" // the error is reported when the folder is opened
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	if mode&0o002 != 0 || mode&0o020 != 0 && ok && int64(st.Gid) != int64(os.Getegid()) {
		return "can be written to by other users"
	}
	return ""
}
