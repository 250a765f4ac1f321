// Package hub is the database of a team: a PostgreSQL server that queues inputs, keeps claims for ever, carries
// questions and answers between machines, and has a copy of each worker's log. All SQL for this server is here.
//
// An input has one claim, for ever. A single transaction inserts the claim's only row and deletes the input from
// the queue. It runs on the server on which the input's generation began. The package never sends a statement
// again if the fate of the first one is unknown, and it decides nothing by time. It does not judge signatures: a row is
// a proposal, and each reader compares it with the known keys. No two proposals have the same signed text.
//
// A copy has the events of one log without a gap from the first event on, each as it is on the worker's disk. A
// batch is written whole or not at all, and only after the event that it follows. Package eventlog/verify judges
// copies.
//
// A generation names the time in which a server forgot nothing. A promoted standby or a restored backup may have
// forgotten claims. Its system identifier and its timeline show that, and it takes no input until a person begins
// a new generation there.
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// oldest is the oldest version of PostgreSQL that is used.
const oldest = 150000

// How long a single exchange with the server may take: patience, and the time of its bytes on the slowest line on which
// a hub can be worked with.
const (
	patience = 30 * time.Second
	slowest  = 64 << 10 // bytes a second
)

// What keeps a hub from being used.
var (
	// ErrStandby: the server follows another one, and takes nothing.
	ErrStandby error = &Fault{
		Text:   "hub: the server is a standby",
		Advice: "name the primary server; a standby that is to take its place is promoted, then adopted: perlica team adopt",
	}
	// ErrNoTeam: the database holds no team.
	ErrNoTeam error = &Fault{
		Text:   "hub: this database holds no team",
		Advice: "make one there: perlica team init",
	}
	// ErrUnsure: what was asked for was done on this server, and whether it was done on its standby is not known.
	ErrUnsure = errors.New("hub: the server did not wait for its standby")
	// ErrURL: a connection string cannot be read, or would send in clear over a network.
	ErrURL error = &Fault{
		Text:    "hub: the connection string",
		Advice:  "for example postgres://NAME@db.example.org/perlica?sslmode=verify-full",
		ByUsage: true,
	}
	// ErrNotAllowed: the role lacks a right.
	ErrNotAllowed error = &Fault{
		Text:   "hub: this role may not do that",
		Advice: "the database's administrator grants perlica_member to the role, and perlica_admin to an admin's: see docs/team.md",
	}
	// ErrFull says that the server undid a transaction for want of room on its disk.
	ErrFull error = &Fault{
		Text:   "hub: the disk of the server is full",
		Advice: "nothing was taken; make room on that disk, then submit again",
	}
)

// A VersionError says that a server, or the schema of a team, is of a version that is not spoken here.
type VersionError struct {
	What        string // "PostgreSQL" or "the team's schema"
	Have, Speak int
}

func (e *VersionError) Error() string {
	if e.What == server {
		return fmt.Sprintf("hub: PostgreSQL %d is too old: %d or newer is needed", e.Have/10000, e.Speak/10000)
	}
	if e.Have > e.Speak {
		return fmt.Sprintf("hub: %s is version %d, made by a newer Perlica; this one knows %d", e.What, e.Have, e.Speak)
	}
	return fmt.Sprintf("hub: %s is version %d; this Perlica needs %d", e.What, e.Have, e.Speak)
}

// Hint returns what to do.
func (e *VersionError) Hint() string {
	switch {
	case e.What == server:
		return "a team needs a newer server: PostgreSQL's pg_upgrade brings the database along"
	case e.Have > e.Speak:
		return "use that version of Perlica here, too"
	}
	return "an admin brings the schema up to date: perlica team init"
}

const server, schema = "PostgreSQL", "the team's schema"

// Hub is a connection to a team's database, which is made when it is needed, and again after it was lost. Its
// methods may be called from several goroutines; one statement is under way at a time. After an error of a
// method that writes it is not known whether what it wrote is there, unless the error is one of this package's
// other than ErrUnsure. The caller must Close it.
type Hub struct {
	config *pgx.ConnConfig

	mu     sync.Mutex // held while a statement is under way; guards what follows
	conn   *pgx.Conn
	warned bool // the server warned of something since the last statement began
	closed bool
}

// Open prepares a connection to the database at url, a connection string as libpq takes it. It connects to
// nothing yet. The error wraps ErrURL.
func Open(url string) (*Hub, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w cannot be read: %w", ErrURL, hideSecret(err))
	}
	if !encrypted(config) {
		return nil, fmt.Errorf("%w does not ask for TLS, which is required except on a Unix socket and on loopback", ErrURL)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = patience / 3
	}
	config.RuntimeParams["application_name"] = "perlica"
	config.RuntimeParams["search_path"] = "pg_catalog" // all names here have their schema
	h := &Hub{config: config}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		// PostgreSQL says so, and no more, when the wait for a standby was cancelled.
		h.warned = h.warned || n.SeverityUnlocalized == "WARNING"
	}
	return h, nil
}

// hideSecret leaves the connection string out of an error.
func hideSecret(err error) error {
	var bad *pgconn.ParseConfigError
	if errors.As(err, &bad) {
		return errors.New("it is neither a URL nor key=value pairs that libpq knows")
	}
	return err
}

// encrypted reports whether no attempt to connect would send anything in clear over a network.
func encrypted(c *pgx.ConnConfig) bool {
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

// local reports whether a host is this machine: a Unix socket's folder, or loopback.
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
	err := h.conn.Close(ctx)
	h.conn = nil
	return err
}

// do is Do for what takes no longer than any exchange may.
func (h *Hub) do(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	return h.Carry(ctx, 0, f)
}

// Carry is Do for a single exchange of so many bytes: it ends when that takes longer than it may.
func (h *Hub) Carry(ctx context.Context, bytes int, f func(ctx context.Context, c *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(bytes)*time.Second/slowest)
	defer cancel()
	return h.Do(ctx, f)
}

// Do calls f with the connection, which is made first if there is none, and makes the errors of this package of
// those that f returns. Nothing is tried twice. Until f returns no other statement is under way; it is the
// caller's to bound how long that is.
func (h *Hub) Do(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	if h.conn != nil && h.conn.IsClosed() {
		h.conn = nil
	}
	if h.conn == nil {
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	h.warned = false
	err := f(ctx, h.conn)
	if err == nil && h.warned {
		err = ErrUnsure
	}
	return known(err)
}

// connect makes the connection and looks whether the server can be spoken to. Commits are waited for, whatever
// the role's settings say. Rows that an index has in the wanted order are not sorted: before the server has looked
// at a queue that has grown it takes it for a short one, and would sort all of it for each claim. For the same reason no table
// is read whole where an index finds what is wanted: it may have been empty when the statement was planned. No statement
// is compiled (jit): to the server one that sorts all the same seems to cost so much that it would be, for a second each time. A
// statement is planned once (plan_cache_mode): each finds its rows by keys, and to plan a claim takes twice as long as to make it.
func (h *Hub) connect(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, h.config)
	if err != nil {
		return unreached(err)
	}
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
		_ = c.Close(ctx) // nothing was written
		return known(err)
	}
	h.conn = c
	return nil
}

// A hintError is an error that knows what to do about it, which depends on what the server or the system said.
type hintError struct {
	error
	hint string
}

// Hint returns what to do.
func (e *hintError) Hint() string { return e.hint }

func (e *hintError) Unwrap() error { return e.error }

// unreached says why there is no connection.
func unreached(err error) error {
	hint := "see that the server runs, and that team.url or PERLICA_TEAM_URL names it"
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case strings.HasPrefix(pg.Code, "28"): // invalid authorization
			hint = "the role and the password of team.url or PERLICA_TEAM_URL are those that the database's administrator gave out: see docs/team.md"
		case strings.HasPrefix(pg.Code, "3D"): // invalid catalog name
			hint = "the database's administrator makes it: createdb"
		case strings.HasPrefix(pg.Code, "53"): // insufficient resources
			hint = "the server has no connection left: see its max_connections"
		}
	}
	return &hintError{fmt.Errorf("hub: cannot be reached: %w", err), hint}
}

// The SQLSTATEs that have errors of their own here.
const (
	stateInRecovery = "55000"
	stateReadOnly   = "25006"
	stateNoTable    = "42P01"
	stateNoSchema   = "3F000"
	statePrivilege  = "42501"
	stateNoRole     = "42704"
	stateForeignKey = "23503"
	stateUnique     = "23505"
	stateDivision   = "22012"
	stateDiskFull   = "53100" // at a commit it would end the server instead
)

// known makes the errors of this package of those of the server that have one.
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
