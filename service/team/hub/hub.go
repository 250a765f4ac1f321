// Package hub is the database of a team: a PostgreSQL server that queues inputs and keeps claims
// for ever. It carries questions and answers between machines and has a copy of each worker's log.
// All SQL for this server is here.
//
// An input has one claim, for ever. A single transaction inserts the claim's only row and deletes
// the input from the queue. It runs on the server on which the input's generation began. The
// package never sends a statement again if the fate of the first one is unknown, and it decides
// nothing by time. It does not judge signatures: a row is a proposal, and each reader compares it
// with the known keys. No two proposals have the same signed text.
//
// A copy has the events of one log without a gap from the first event on, each as it is on the
// worker's disk. A batch is written whole or not at all, and only after the event that it follows.
// Package eventlog/verify judges copies.
//
// A generation is a period in which a server forgot nothing. A promoted standby or a restored backup may have forgotten
// claims. Its system identifier and its timeline show that, and it takes no input until a person begins a new
// generation there.
//
// The package starts no goroutine. Hub.mu is held during each statement, and no other lock is taken
// under it.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldest is the oldest accepted version of PostgreSQL.
const oldest = 150000

// An exchange may take the time patience, and in addition the time that its bytes take at the speed slowest.
const (
	patience = 30 * time.Second
	slowest  = 64 << 10 // bytes a second
)

// These errors are the reasons why a hub cannot be used.
var (
	// ErrStandby says that the server follows another one and accepts no writes.
	ErrStandby error = &Fault{
		Text:   "hub: the server is a standby",
		Advice: "name the primary server; to replace it by this standby, promote the standby, then run: perlica team adopt",
	}
	// ErrNoTeam says that the database holds no team.
	ErrNoTeam error = &Fault{
		Text:   "hub: this database holds no team",
		Advice: "make one there: perlica team init",
	}
	// ErrUnsure says that this server did the work, and that the result on its standby is unknown.
	ErrUnsure = errors.New("hub: the server did not wait for its standby")
	// errURL says that a connection string cannot be read, or would send unencrypted data over a
	// network.
	errURL error = &Fault{
		Text:    "hub: the connection string",
		Advice:  "for example postgres://NAME@db.example.org/perlica?sslmode=verify-full",
		ByUsage: true,
	}
	// ErrNotAllowed says that the role lacks a right.
	ErrNotAllowed error = &Fault{
		Text: "hub: this role may not do that",
		Advice: "the database's administrator grants perlica_member to the role, and perlica_admin to the role of " +
			"an admin: see docs/team.md",
	}
	// ErrFull says that the server undid a transaction because its disk is full.
	ErrFull error = &Fault{
		Text:   "hub: the disk of the server is full",
		Advice: "nothing was taken; make room on that disk, then submit again",
	}
)

// A VersionError says that the version of a server, or of a team's schema, is not supported.
type VersionError struct {
	What        string // "PostgreSQL" or "the team's schema"
	Have, Speak int
}

func (e *VersionError) Error() string {
	if e.What == server {
		return fmt.Sprintf("hub: PostgreSQL %d is too old: %d or newer is needed", e.Have/10000, e.Speak/10000)
	}
	return fmt.Sprintf("hub: %s is version %d; this Perlica needs version %d", e.What, e.Have, e.Speak)
}

// Hint returns the remedy.
func (e *VersionError) Hint() string {
	if e.What == server {
		return "a team needs a newer server: PostgreSQL's pg_upgrade brings the database along"
	}
	return "use the version of Perlica that made the team, or make a new team in an empty database: perlica team init"
}

const server, schema = "PostgreSQL", "the team's schema"

// Hub is a connection to a team's database. It connects on demand, and again after a loss. Its methods may be called
// from several goroutines, and one statement runs at a time. After an error of a writing method it is unknown whether
// the data was written. This package's own errors, except ErrUnsure, mean that it was not written. The caller must
// Close it.
type Hub struct {
	config *pgconn.Config

	mu     sync.Mutex // held during a statement; guards the fields below
	conn   *Conn
	warned bool // the server has sent a warning since the last statement began
	closed bool
}

// Open prepares a connection to the database at url, a connection string of libpq. It does not
// connect yet. The error wraps errURL.
func Open(url string) (*Hub, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w cannot be read: %w", errURL, hideSecret(err))
	}
	if !encrypted(config) {
		return nil, fmt.Errorf("%w does not ask for TLS, which is required except on a Unix socket and on loopback", errURL)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = patience / 3
	}
	config.RuntimeParams["application_name"] = "perlica"
	// timeLayout expects this style and this zone.
	config.RuntimeParams["datestyle"], config.RuntimeParams["timezone"] = "ISO", "UTC"
	config.RuntimeParams["search_path"] = "pg_catalog" // all names in this package include their schema
	h := &Hub{config: config}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// A warning after a commit means that the wait for a standby was cancelled. Without this check, the commit
		// would look confirmed.
		h.warned = h.warned || n.SeverityUnlocalized == "WARNING"
	}
	return h, nil
}

// hideSecret removes the connection string from an error.
func hideSecret(err error) error {
	var bad *pgconn.ParseConfigError
	if errors.As(err, &bad) {
		return errors.New("it is neither a URL nor key=value pairs that libpq knows")
	}
	return err
}

// encrypted reports whether no attempt to connect would send unencrypted data over a network.
func encrypted(c *pgconn.Config) bool {
	if c.TLSConfig == nil && !local(c.Host) {
		return false
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig == nil && !local(f.Host) {
			return false
		}
	}
	return true
}

// local reports whether a host is this machine: the folder of a Unix socket, or loopback.
func local(host string) bool {
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close ends the connection. Later calls do nothing.
func (h *Hub) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := h.conn.pg.Close(ctx)
	h.conn = nil
	return err
}

// do calls Do with the time limit of a small exchange.
func (h *Hub) do(ctx context.Context, f func(ctx context.Context, c *Conn) error) error {
	return h.Carry(ctx, 0, f)
}

// Carry calls Do with the time limit of a single exchange of this many bytes.
func (h *Hub) Carry(ctx context.Context, bytes int, f func(ctx context.Context, c *Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(bytes)*time.Second/slowest)
	defer cancel()
	return h.Do(ctx, f)
}

// Do connects if necessary, calls the function f with the connection, and translates f's error to an error of this
// package. It never repeats a call. No other statement runs until f returns. The caller limits the time.
func (h *Hub) Do(ctx context.Context, f func(ctx context.Context, c *Conn) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	if h.conn != nil && h.conn.pg.IsClosed() {
		h.conn = nil
	}
	if h.conn == nil {
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	h.warned = false
	err := f(ctx, h.conn)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == statePlan || pg.Code == stateNoPlan) {
		_ = h.conn.pg.Close(ctx) // the next call connects again and prepares its statements again
	}
	if err == nil && h.warned {
		err = ErrUnsure
	}
	return known(err)
}

// connect connects and checks that the server can be used. It makes these settings regardless of
// the role's settings. Commits wait for the disk. Sorting is off if an index has the order: the
// server underestimates a queue that has grown since its last analysis, and would sort it for each
// claim. Reading a whole table is off if an index finds the rows, because the table may have been
// empty at planning. Compiling (jit) is off: a remaining sort would seem expensive enough to
// compile, for a second each time. Each statement is planned once (plan_cache_mode), because
// planning a claim takes longer than running it; BenchmarkClaim measures claims.
func (h *Hub) connect(ctx context.Context) error {
	pg, err := pgconn.ConnectConfig(ctx, h.config)
	if err != nil {
		return unreached(err)
	}
	c := &Conn{pg, map[string]*pgconn.StatementDescription{}}
	var version int
	err = c.QueryRow(ctx, `
		SELECT current_setting('server_version_num')::int,
		       CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN set_config('synchronous_commit', 'on', false) END IS NULL,
		       set_config('enable_sort', 'off', false) || set_config('enable_seqscan', 'off', false) ||
		       set_config('jit', 'off', false) || set_config('plan_cache_mode', 'force_generic_plan', false) IS NULL`).
		Scan(&version, nil, nil)
	if err == nil && version < oldest {
		err = &VersionError{server, version, oldest}
	}
	if err != nil {
		_ = pg.Close(ctx) // nothing was written
		return known(err)
	}
	h.conn = c
	return nil
}

// A hintError is an error with a remedy that depends on the message of the server or the system.
type hintError struct {
	error
	hint string
}

// Hint returns the remedy.
func (e *hintError) Hint() string { return e.hint }

func (e *hintError) Unwrap() error { return e.error }

// unreached returns the error of a failed connection with its remedy.
func unreached(err error) error {
	hint := "see that the server runs, and that team.url or PERLICA_TEAM_URL names it"
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case strings.HasPrefix(pg.Code, "28"): // invalid authorization
			hint = "the role and the password of team.url or PERLICA_TEAM_URL are those that the database's administrator " +
				"gave out: see docs/team.md"
		case strings.HasPrefix(pg.Code, "3D"): // invalid catalog name
			hint = "the database's administrator makes it: createdb"
		case strings.HasPrefix(pg.Code, "53"): // insufficient resources
			hint = "the server has no connection left: see its max_connections"
		}
	}
	return &hintError{fmt.Errorf("hub: cannot be reached: %w", err), hint}
}

// These SQLSTATEs have their own errors in this package.
const (
	stateInRecovery = "55000"
	stateReadOnly   = "25006"
	stateNoTable    = "42P01"
	stateNoSchema   = "3F000"
	statePrivilege  = "42501"
	stateNoRole     = "42704"
	stateForeignKey = "23503"
	stateUnique     = "23505"
	stateDuplicate  = "42P07"
	stateDivision   = "22012"
	statePlan       = "0A000" // a table has changed since a statement was prepared
	stateNoPlan     = "26000" // the server does not know a prepared statement
	stateDiskFull   = "53100" // at a commit, a full disk would end the server instead
)

// known translates the server's errors to errors of this package.
func known(err error) error {
	var pg *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &pg):
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("hub: the connection is lost: %w", err)
	default:
		return err
	}
	switch pg.Code {
	case stateInRecovery, stateReadOnly:
		return fmt.Errorf("%w: %s", ErrStandby, pg.Message)
	case stateNoTable, stateNoSchema:
		return fmt.Errorf("%w: %s", ErrNoTeam, pg.Message)
	case statePrivilege, stateNoRole:
		return fmt.Errorf("%w: %s", ErrNotAllowed, pg.Message)
	case stateDiskFull:
		return fmt.Errorf("%w: %s", ErrFull, pg.Message)
	case stateForeignKey:
		return fmt.Errorf("%w: %s", ErrNoClaim, pg.Message)
	}
	return fmt.Errorf("hub: %w", err)
}
