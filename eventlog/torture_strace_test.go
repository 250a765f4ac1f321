package eventlog

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// straceable skips the test if writers cannot be traced.
func straceable(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("NOT TESTED: the log survives failed and lost system calls: strace is not installed")
	}
	probe := filepath.Join(t.TempDir(), "probe")
	if out, err := exec.CommandContext(t.Context(), "strace", "-f", "-o", probe, "-e", "inject=getppid:error=EIO", "true").
		CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED: the log survives failed and lost system calls: strace may not trace, or is too old: %v, %.200s",
			err, out)
	}
}

// understood are the system calls for files that the recorder handles. forbidden are other calls that change files.
// If a writer starts to use one of those, the recorder must be extended. A name with a question mark does not exist
// on every architecture.
const (
	understood = "?open,openat,close,pwrite64,write,fsync,fdatasync,ftruncate,?unlink,unlinkat"
	forbidden  = "writev,pwritev,pwritev2,fallocate,?rename,?renameat,renameat2,?link,linkat,?symlink,symlinkat," +
		"truncate,copy_file_range,sendfile,splice,sync_file_range"
)

// A recorder reads the output of strace for several writers, one after the other. It lists the operations of the
// writers on one folder.
type recorder struct {
	dir string
	// writer is the number of the current writer, from 1.
	writer int
	ops    []op
	// points are the system calls that belong to ops.
	points []syscallPoint
	names  map[string]int
	sizes  []int64 // by inode
	files  map[string]*openFile
	// calls counts the calls by thread and name.
	calls map[string]int
	// halves are the beginnings of unfinished calls, by thread.
	halves map[string]string
}

// A syscallPoint is the nth call with this name by its thread. strace counts in the same way.
type syscallPoint struct {
	call string
	nth  int
	ack  bool // the process acknowledged events
}

// An openFile is the file that belongs to a file descriptor.
type openFile struct {
	name   string
	inode  int // -1 means the folder itself
	pos    int64
	append bool
	synced bool // opened with O_SYNC
}

func newRecorder(dir string) *recorder { return &recorder{dir: dir, names: map[string]int{}} }

// performTraced runs the script s under strace with further options. It records the operations and returns the output
// of the writer.
func (r *recorder) performTraced(t *testing.T, s script, options ...string) []byte {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	prefix := append([]string{"strace", "-f", "-xx", "-s", "1000000", "-o", trace, "-e",
		"trace=" + understood + "," + forbidden}, options...)
	cmd := s.command(t, prefix...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if stderr.Len() > 0 {
		t.Fatalf("strace: %v, %.500s", err, &stderr)
	} // The exit code is that of a writer, which may have been killed.
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(trace) // the file is long, and a long test makes many files
	}()
	if err := r.readTrace(bufio.NewScanner(f)); err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *recorder) readTrace(lines *bufio.Scanner) error {
	r.writer++
	r.files, r.calls, r.halves = map[string]*openFile{}, map[string]int{}, map[string]string{}
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		thread, line, _ := strings.Cut(lines.Text(), " ")
		if err := r.readLine(thread, strings.TrimLeft(line, " ")); err != nil {
			return fmt.Errorf("%w in %.200q", err, line)
		}
	}
	return lines.Err()
}

// readLine parses one line. If another call interrupts a call in the output, strace prints the call in two parts. Such
// a call counts at its second part. The exceptions are printed output and closed descriptors, which count at the first
// part. Another process may read the output before the second part, and another thread may get the descriptor before
// it.
func (r *recorder) readLine(thread, line string) error {
	if half, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
		if strings.HasPrefix(half, "write(1, ") {
			r.addPrinted(half)
		}
		if fd, ok := strings.CutPrefix(half, "close("); ok {
			delete(r.files, fd)
		}
		r.halves[thread] = half
		return nil
	}
	if strings.HasPrefix(line, "<... ") {
		_, rest, _ := strings.Cut(line, " resumed>")
		half := r.halves[thread]
		if line = half + rest; strings.HasPrefix(half, "write(1, ") {
			return nil
		}
		if strings.HasPrefix(half, "close(") {
			r.calls[thread+"close"]++
			return nil
		}
	}
	name, rest, ok := strings.Cut(line, "(")
	end := strings.IndexByte(rest, ')') // no argument contains a bracket, because strings are hexadecimal
	if !ok || end < 0 || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") {
		return nil
	}
	args := strings.Split(rest[:end], ", ")
	result, _, _ := strings.Cut(strings.TrimLeft(rest[end+1:], " =")+" ", " ")
	r.calls[thread+name]++
	before := len(r.ops)
	value, err := strconv.ParseInt(result, 10, 64)
	if err != nil { // "?" means that the call did not return
		return nil
	}
	err = r.addCall(name, args, value)
	if len(r.ops) > before {
		r.points = append(r.points, syscallPoint{name, r.calls[thread+name], r.ops[before].kind == opAck})
	}
	return err
}

// TestRecorderCloses checks that the recorder counts a write to a descriptor that another thread is just closing.
func TestRecorderCloses(t *testing.T) {
	hexed := func(s string) string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
		return b.String()
	}
	opens := `openat(AT_FDCWD, "` + hexed("/d/"+logName) + `", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 7`
	r := newRecorder("/d")
	err := r.readTrace(bufio.NewScanner(strings.NewReader(strings.Join([]string{
		"1 " + opens, "1 close(7 <unfinished ...>", "2 " + opens, "1 <... close resumed>)         = 0",
		`2 pwrite64(7, "` + hexed("x") + `", 1, 0) = 1`, "2 fdatasync(7) = 0",
	}, "\n"))))
	var did []string
	for _, o := range r.ops {
		did = append(did, o.String())
	}
	if want := []string{"create eventlog.db", "write eventlog.db 0+1", "sync eventlog.db"}; err != nil ||
		!slices.Equal(did, want) {
		t.Errorf("%q %v, want %q", did, err, want)
	}
}

func (r *recorder) addPrinted(line string) {
	for _, text := range strings.Split(string(unhex(strings.Split(line, ", ")[1])), "\n") {
		var n int
		if _, err := fmt.Sscanf(text, "ack %d", &n); err == nil {
			r.ops = append(r.ops, op{kind: opAck, acked: n, writer: r.writer})
		} else if _, err := fmt.Sscanf(text, "seen %d", &n); err == nil {
			r.ops = append(r.ops, op{kind: opAck, acked: n})
		}
	}
}

// addCall records one call that returned value.
func (r *recorder) addCall(name string, args []string, value int64) error {
	switch name {
	case "open":
		return r.addOpen(args[0], args[1], value)
	case "openat":
		return r.addOpen(args[1], args[2], value)
	case "unlink":
		r.addUnlink(args[0], value)
		return nil
	case "unlinkat":
		r.addUnlink(args[1], value)
		return nil
	case "write":
		if args[0] == "1" {
			r.addPrinted("(" + strings.Join(args, ", "))
			return nil
		}
	}
	f := r.files[args[0]]
	if f == nil {
		switch name {
		case "close", "fsync", "fdatasync", "ftruncate", "pwrite64", "write":
			return nil // the call is on another file
		}
		for i, a := range args {
			if r.files[a] != nil && i%2 == 0 || strings.HasPrefix(string(unhex(a)), r.dir) {
				return fmt.Errorf("the recorder does not know %s", name)
			}
		}
		return nil
	}
	return r.onFile(f, name, args, value)
}

func (r *recorder) onFile(f *openFile, name string, args []string, value int64) error {
	o := op{inode: f.inode, name: f.name}
	switch name {
	case "close":
		delete(r.files, args[0])
		return nil
	case "fsync", "fdatasync":
		if o.kind, o.failed = opSync, value < 0; f.inode < 0 {
			o.kind = opSyncDir
		}
	case "ftruncate":
		if value < 0 {
			return nil
		}
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		o.kind, o.size, r.sizes[f.inode] = opTruncate, size, size
	case "write", "pwrite64":
		data := unhex(args[1])
		if value <= 0 {
			return nil
		}
		if value > int64(len(data)) {
			return fmt.Errorf("strace cut the data off")
		}
		o.kind, o.data, o.off = opWrite, data[:value], f.pos
		if f.append {
			o.off = r.sizes[f.inode]
		}
		if name == "pwrite64" {
			off, err := strconv.ParseInt(args[3], 10, 64)
			if err != nil {
				return err
			}
			o.off = off
		} else {
			f.pos = o.off + value
		}
		r.sizes[f.inode] = max(r.sizes[f.inode], o.off+value)
	default:
		return fmt.Errorf("the recorder does not know %s", name)
	}
	r.ops = append(r.ops, o)
	if o.kind == opWrite && f.synced {
		r.ops = append(r.ops, op{kind: opSync, inode: f.inode, name: f.name})
	}
	return nil
}

func (r *recorder) addOpen(path, flags string, fd int64) error {
	if fd < 0 {
		return nil
	}
	file, key := string(unhex(path)), strconv.FormatInt(fd, 10)
	delete(r.files, key)
	if file == r.dir {
		r.files[key] = &openFile{inode: -1}
		return nil
	}
	name := filepath.Base(file)
	if filepath.Dir(file) != r.dir || strings.HasSuffix(name, "-shm") { // ignore -shm files: SQLite makes them again
		return nil
	}
	inode, there := r.names[name]
	if !there {
		inode = len(r.sizes)
		r.names[name], r.sizes = inode, append(r.sizes, 0)
		r.ops = append(r.ops, op{kind: opLink, inode: inode, name: name})
	}
	if strings.Contains(flags, "O_TRUNC") {
		r.ops, r.sizes[inode] = append(r.ops, op{kind: opTruncate, inode: inode, name: name}), 0
	}
	r.files[key] = &openFile{name: name, inode: inode,
		append: strings.Contains(flags, "O_APPEND"), synced: strings.Contains(flags, "SYNC")}
	return nil
}

func (r *recorder) addUnlink(path string, value int64) {
	file := string(unhex(path))
	name := filepath.Base(file)
	if inode, there := r.names[name]; there && value == 0 && filepath.Dir(file) == r.dir {
		delete(r.names, name)
		r.ops = append(r.ops, op{kind: opUnlink, inode: inode, name: name})
	}
}

// unhex returns the bytes of a string that strace -xx printed. It returns nil for other arguments.
func unhex(s string) []byte {
	if !strings.HasPrefix(s, `"`) || !strings.HasSuffix(s, `"`) {
		return nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s[1:len(s)-1], `\x`, ""))
	if err != nil {
		return nil
	}
	return b
}
