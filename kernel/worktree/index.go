package worktree

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// entry is a file of the index.
type entry struct {
	path     string
	mode     string // as git writes it: 100644
	size     uint32
	modified time.Time
	blob     string
}

var errIndex = errors.New("the index of git cannot be read")

// These are the offsets of the fields in an entry of the index, and the length of a hash, in bytes.
const (
	atModified = 8
	atMode     = 24
	atSize     = 36
	atBlob     = 40
	blobBytes  = 20
)

// These are flags of an entry.
const (
	flagExtended = 0x4000
	flagStage    = 0x3000
	skipWorktree = 0x4000 // of the extended flags: the file need not be in the work tree
)

// parseIndex reads an index of version 2, 3 or 4, in a repository with SHA-1. It leaves out other repositories in the
// tree, and files that need not be there. An index over a limit cannot be read: in version 4, a path of a few bytes can
// repeat a long one.
func parseIndex(ctx context.Context, b []byte) (entries []entry, err error) {
	if len(b) < 12+blobBytes || string(b[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 || count > maxFiles {
		return nil, errIndex
	}
	b = b[12 : len(b)-blobBytes] // a checksum ends the file
	before, total := "", 0
	for range count {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(b) < atBlob+blobBytes+2 {
			return nil, errIndex
		}
		e := entry{
			size: binary.BigEndian.Uint32(b[atSize:]), blob: hex.EncodeToString(b[atBlob : atBlob+blobBytes]),
			modified: time.Unix(int64(binary.BigEndian.Uint32(b[atModified:])),
				int64(binary.BigEndian.Uint32(b[atModified+4:]))),
		}
		mode := binary.BigEndian.Uint32(b[atMode:])
		n := atBlob + blobBytes
		flags, extended := binary.BigEndian.Uint16(b[n:]), uint16(0)
		if n += 2; flags&flagExtended != 0 {
			if version < 3 || len(b) < n+2 {
				return nil, errIndex
			}
			extended = binary.BigEndian.Uint16(b[n:])
			n += 2
		}
		var used int
		e.path, used = parsePath(b[n:], version, before)
		if total += len(e.path); used == 0 || total > maxPaths {
			return nil, errIndex
		}
		before = e.path
		if n += used; version < 4 {
			n += (8 - n%8) % 8 // NUL bytes fill the entry up to a multiple of eight
		}
		if n > len(b) {
			return nil, errIndex
		}
		b = b[n:]
		switch mode {
		case 0o100644, 0o100755, 0o120000:
			e.mode = map[uint32]string{0o100644: "100644", 0o100755: "100755", 0o120000: "120000"}[mode]
			if flags&flagStage == 0 && extended&skipWorktree == 0 {
				entries = append(entries, e)
			}
		}
	}
	return entries, checkExtensions(b)
}

// checkExtensions returns an error if a reader must know an extension of the index. Only extensions whose names begin
// with a capital letter can be ignored. The others keep entries in another file, or name a folder instead of its files.
func checkExtensions(b []byte) error {
	for len(b) >= 8 {
		size := int64(binary.BigEndian.Uint32(b[4:]))
		if b[0] < 'A' || b[0] > 'Z' || size > int64(len(b)-8) {
			return errIndex
		}
		b = b[8+size:]
	}
	return nil
}

// parsePath reads the path of an entry. In version 4, it begins like the path before it. The function returns the
// number of used bytes, or 0.
func parsePath(b []byte, version uint32, before string) (name string, used int) {
	same := 0 // bytes of the path before
	if version == 4 {
		var cut int
		if cut, used = offset(b); used == 0 || cut > len(before) {
			return "", 0
		}
		same = len(before) - cut
	}
	end := bytes.IndexByte(b[used:], 0)
	if end < 0 || same+end > maxPath {
		return "", 0
	}
	return before[:same] + string(b[used:used+end]), used + end + 1
}

// offset decodes a number in the variable-length format of offsets in git's packs. The result "used" is 0 if the
// number is invalid.
func offset(b []byte) (n, used int) {
	for i, c := range b {
		if i > 0 {
			n++
		}
		n = n<<7 | int(c&0x7f)
		if i == 4 || c&0x80 == 0 {
			if c&0x80 != 0 {
				return 0, 0
			}
			return n, i + 1
		}
	}
	return 0, 0
}
