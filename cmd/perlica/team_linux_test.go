package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

func init() {
	afterTests = hubtest.Remove
	scriptCommands["hub"] = cmdHub
	scriptCommands["hubsql"] = cmdHubSQL
	scriptCommands["inputs"] = cmdInputs
	scriptCommands["listen"] = cmdListen
	scriptCommands["connections"] = cmdConnections
}

var submitInputs = flag.Int("submit", 2_000, "how many inputs the script submit.txtar submits at once")

// TestTeamScripts runs testdata/team/*.txtar. Each script has an empty database on a real server. $HUB connects as the
// owner of the database. The owner is not a superuser. ${HUB_AS}NAME connects as the role NAME. PERLICA_TEAM_URL is not
// set.
func TestTeamScripts(t *testing.T) {
	t.Parallel()
	s, _ := hubtest.Shared(t)
	files, err := filepath.Glob("testdata/team/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts:", err)
	}
	if testing.Short() { // These scripts take a long time.
		files = slices.DeleteFunc(files, func(
			file string) bool {
			return strings.Contains(file, "submit") || strings.Contains(file, "three")
		})
	}
	runScripts(t, files, func(env *testscript.Env) error {
		db := s.Database(t)
		s.Give(t, db)
		env.Setenv("HUB", s.URL(hubtest.Lead, db))
		env.Setenv("HUB_AS", s.URL("", db))
		env.Setenv("DATABASE", db)
		env.Setenv("PERLICA_MODEL_DEFAULT_PROVIDER", "predictable")
		env.Setenv("SUBMIT", strconv.Itoa(*submitInputs))
		env.Setenv("QUEUED", strconv.Itoa(*submitInputs+4))
		env.Values[hubKey{}], env.Values[countedKey{}] = s, new(counted)
		return nil
	})
}

// hubKey is the key of the value with a script's server.
type hubKey struct{}

// cmdHubSQL runs statements in the script's database as its owner:
//
//	hubsql 'CREATE ROLE bob LOGIN IN ROLE perlica_member'
func cmdHubSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hubsql STATEMENTS")
	}
	out, err := ts.Value(hubKey{}).(*hubtest.Server).Try("owner", ts.Getenv("DATABASE"), args[0])
	ts.Check(err)
	ts.Logf("%s", out)
}

// cmdHub makes the script's database unreachable and ends all connections to it, or makes it reachable again:
//
//	hub away
//	hub back
func cmdHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "away" && args[0] != "back" {
		ts.Fatalf("usage: hub away|back")
	}
	s := ts.Value(hubKey{}).(*hubtest.Server)
	does := map[string]func(string) error{"away": s.Away, "back": s.Back}[args[0]]
	ts.Check(does(ts.Getenv("DATABASE")))
}

// counted is a listener that counts connections. It closes each connection at once.
type counted struct {
	net.Listener
	n atomic.Int32
}

// countedKey is the key of the value with a script's listener.
type countedKey struct{}

// cmdListen starts a listener that is not a server, and sets a variable to a connection string for it:
//
//	listen PERLICA_TEAM_URL
func cmdListen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	c := ts.Value(countedKey{}).(*counted)
	c.Listener = l
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.n.Add(1)
			_ = conn.Close() // Nothing was sent over the connection.
		}
	}()
	ts.Defer(func() {
		_ = l.Close() // The listener was only used to count connections.
		<-ended
	})
	ts.Setenv(args[0], fmt.Sprintf("postgres://u@%s/t?sslmode=disable", l.Addr()))
}

// cmdConnections checks whether a program has connected to the listener of the command listen:
//
//	! connections
func cmdConnections(ts *testscript.TestScript, neg bool, args []string) {
	if n := ts.Value(countedKey{}).(*counted).n.Load(); (n > 0) == neg {
		ts.Fatalf("%d connections", n)
	}
}

// cmdInputs writes N lines for perlica team submit to a file:
//
//	inputs 1000 inputs.ndjson
func cmdInputs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: inputs N FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b := make([]byte, 0, n*60)
	for i := range n {
		b = append(b, `{"id":"i`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `","text":"input `...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, "\"}\n"...)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}
