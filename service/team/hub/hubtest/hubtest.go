//go:build linux

// Package hubtest starts real PostgreSQL servers for tests, on a socket in a temporary directory
// and as an ordinary user. It kills them and makes standbys and backups of them. It skips the test
// if no server is installed.
package hubtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startLimit limits the start and the end of a server.
const startLimit = 90 * time.Second

// Server is a PostgreSQL server of a test.
type Server struct {
	dir, data string
	options   []string
	process   *exec.Cmd
	gone      chan struct{} // closed when the process has ended
}

// Start makes a database cluster and starts a server on it. settings have the form name=value. The
// server ends with the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := New(t, settings...)
	s.Init(t)
	s.Run(t)
	return s
}

// New returns a server without data. It skips the test if PostgreSQL is not installed.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	if programs() == "" {
		t.Skip("NOT TESTED: teams: PostgreSQL is not installed")
	}
	s, err := prepare(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

func prepare(settings []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pg") // a socket's name must be short
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, data: filepath.Join(dir, "data"), options: settings}
	if o := owner(); o != nil {
		err = os.Chown(dir, int(o.Uid), int(o.Gid))
	}
	return s, err
}

func (s *Server) remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir) // an error does not matter for a temporary folder
}

// kept lists the servers that belong to no single test.
var kept struct {
	mu   sync.Mutex
	list []*Server
}

// keep prepares a server that Remove removes.
func keep() (*Server, error) {
	s, err := prepare(nil)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.list = append(kept.list, s)
	return s, err
}

// template is a cluster that this process makes once. It does not run.
var template = sync.OnceValues(func() (*Server, error) {
	s, err := keep()
	if err == nil {
		_, err = s.command("initdb", "-D", s.data, "-U", "owner", "--auth=trust", "--no-sync", "--no-instructions", "-E",
			"UTF8", "--no-locale").output()
	}
	return s, err
})

// Init makes an empty cluster. All clusters of a process have the same system identifier. A test that needs a different
// identifier makes its cluster in another process.
func (s *Server) Init(t testing.TB) {
	t.Helper()
	if err := s.init(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) init() error {
	made, err := template()
	if err == nil {
		_, err = s.command("cp", "-R", made.data, s.data).output()
	}
	return err
}

// Run starts the server, also after a kill, and returns when it accepts connections.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) run() error {
	args := []string{"-D", s.data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=80",
		"-c", "shared_buffers=32MB",
		"-c", "logging_collector=off", "-c", "autovacuum_naptime=5s", "-c", "restart_after_crash=off"}
	for _, o := range s.options {
		args = append(args, "-c", o)
	}
	c := s.command("postgres", args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	started := make(chan error)
	gone := make(chan struct{})
	// The starting thread must live as long as the server, because the system ends the server with
	// it.
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait() // the process is usually killed
			close(gone)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.process, s.gone = c.Cmd, gone
	return s.await(func() bool {
		b, _ := os.ReadFile(filepath.Join(s.data, "postmaster.pid")) // the file may not exist yet
		lines := strings.Split(string(b), "\n")
		return len(lines) > 7 && lines[0] == strconv.Itoa(c.Process.Pid) && strings.HasPrefix(lines[7], "ready")
	}, "is not ready")
}

// await waits until the server has reached a state.
func (s *Server) await(is func() bool, otherwise string) error {
	for end := time.Now().Add(startLimit); !is(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-s.gone:
			b, _ := os.ReadFile(filepath.Join(s.dir, "log")) // for the message
			return errors.New("hubtest: the server ended: " + string(b))
		default:
		}
		if time.Now().After(end) {
			return errors.New("hubtest: the server " + otherwise)
		}
	}
	return nil
}

// Kill ends the server and all its processes at once, like a crash. It returns when they are gone.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	pids := append(s.children(), s.process.Process.Pid)
	_ = s.process.Process.Signal(syscall.SIGSTOP) // so that it starts no further process; an error: it is gone
	pids = append(pids, s.children()...)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended
	}
	<-s.gone
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil && isAlive(pid) {
			time.Sleep(time.Millisecond)
		}
	}
	s.process = nil
}

// Pause stops the server and all its processes until Continue, like a cut network.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	for _, pid := range append(s.children(), s.process.Process.Pid) {
		_ = syscall.Kill(pid, sig) // the process may have ended
	}
}

// URL returns the connection string of a role to a database.
func (s *Server) URL(role, database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=%s", database, s.dir, role)
}

// SQL runs statements as the owner in a database and returns their output.
func (s *Server) SQL(t testing.TB, database, sql string) string {
	t.Helper()
	out, err := s.Try("owner", database, sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs statements as a role in a database.
func (s *Server) Try(role, database, sql string) (string, error) {
	return s.command("psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", role, "-d", database, "-c",
		sql).output()
}

// Database makes an empty database and returns its name.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t%d", time.Now().UnixNano())
	s.SQL(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Away refuses new connections to a database and ends the existing ones, like an unreachable hub.
func (s *Server) Away(database string) error {
	_, err := s.Try("owner", "postgres", "ALTER DATABASE "+database+" ALLOW_CONNECTIONS false")
	if err == nil {
		_, err = s.Try("owner", "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+
			database+"'")
	}
	return err
}

// Back ends Away.
func (s *Server) Back(database string) error {
	_, err := s.Try("owner", "postgres", "ALTER DATABASE "+database+" ALLOW_CONNECTIONS true")
	return err
}

// Backup copies the present cluster to a server that does not run. A standby follows s from its
// first Run on.
func (s *Server) Backup(t testing.TB, standby bool) *Server {
	t.Helper()
	b := New(t, s.options...)
	args := []string{"-D", b.data, "-X", "stream", "--checkpoint=fast", "--no-sync"}
	if standby {
		args = append(args, "-R", "-d", "host="+s.dir+" user=owner application_name=standby")
	}
	c := s.command("pg_basebackup", args...)
	c.Env = append(c.Env, "PGHOST="+s.dir)
	if _, err := c.output(); err != nil {
		t.Fatal(err)
	}
	return b
}

// Cut disconnects a standby from its server from its next Run on.
func (s *Server) Cut() { s.options = append(s.options, "primary_conninfo=") }

// Copy copies the files of a stopped server, like a restored disk.
func (s *Server) Copy(t testing.TB) *Server {
	t.Helper()
	b := New(t, s.options...)
	if _, err := b.command("cp", "-R", s.data, b.data).output(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return b
}

// Restore lets a stopped backup begin its own timeline at its first Run, like a restored backup.
func (s *Server) Restore(t testing.TB) {
	t.Helper()
	for _, c := range []command{
		s.command("touch", filepath.Join(s.data, "recovery.signal")),
		s.command("sh", "-c", "echo \"restore_command = 'false'\" >> "+filepath.Join(s.data, "postgresql.auto.conf")),
	} {
		if _, err := c.output(); err != nil {
			t.Fatal(err)
		}
	}
	s.Run(t)
	if err := s.await(func() bool { return s.SQL(t, "postgres", "SELECT pg_is_in_recovery()") == "f" },
		"stays in recovery"); err != nil {
		t.Fatal(err)
	}
}

// Promote makes a running standby a primary.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if _, err := s.command("pg_ctl", "promote", "-D", s.data, "-w", "-t", "60").output(); err != nil {
		t.Fatal(err)
	}
}

// AwaitReplayed waits until a standby has all data of the server.
func (s *Server) AwaitReplayed(t testing.TB, standby *Server) {
	t.Helper()
	at := s.SQL(t, "postgres", "SELECT pg_current_wal_lsn()")
	err := standby.await(func() bool {
		return standby.SQL(t, "postgres", "SELECT coalesce(pg_last_wal_replay_lsn() >= '"+at+"', false)") == "t"
	}, "does not follow")
	if err != nil {
		t.Fatal(err)
	}
}

// shared is the server for the package's tests that need no separate one.
var shared = sync.OnceValues(func() (*Server, error) {
	s, err := keep()
	if err == nil {
		err = s.init()
	}
	if err == nil {
		err = s.run()
	}
	if err == nil {
		_, err = s.Try("owner", "postgres", "CREATE ROLE "+Lead+" LOGIN CREATEROLE")
	}
	if err == nil { // the roles belong to the maker of the first team
		_, err = s.Try(Lead, "postgres", "CREATE ROLE perlica_member; CREATE ROLE perlica_admin IN ROLE perlica_member")
	}
	return s, err
})

// Lead is the role that owns the databases of the shared server. It has the rights of a team's
// admin. It is not a superuser, because row security does not apply to a superuser.
const Lead = "lead"

// Shared returns the server that all tests of a process share, and an empty database on it that
// Lead owns. TestMain must call Remove.
func Shared(t testing.TB) (s *Server, database string) {
	t.Helper()
	if programs() == "" {
		t.Skip("NOT TESTED: teams: PostgreSQL is not installed")
	}
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	database = s.Database(t)
	s.Give(t, database)
	return s, database
}

// Give makes Lead the owner of a database of the shared server.
func (s *Server) Give(t testing.TB, database string) {
	t.Helper()
	s.SQL(t, "postgres", "ALTER DATABASE "+database+" OWNER TO "+Lead)
}

// Remove ends the shared server and removes the resources that all tests share. TestMain calls it
// after the tests.
func Remove() {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, s := range kept.list {
		s.remove()
	}
}
