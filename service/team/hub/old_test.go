package hub

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// oldServer answers one connection like PostgreSQL 14, as far as the test needs it.
func oldServer(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for {
		if err := b.Flush(); err != nil {
			return err
		}
		msg, err := b.Receive()
		if err != nil {
			return err
		}
		switch msg.(type) {
		case *pgproto3.Parse:
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Describe:
			b.Send(&pgproto3.ParameterDescription{})
			b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
				{Name: []byte("version"), DataTypeOID: pgtype.Int4OID, DataTypeSize: 4},
				{Name: []byte("set"), DataTypeOID: pgtype.BoolOID, DataTypeSize: 1},
				{Name: []byte("sort"), DataTypeOID: pgtype.BoolOID, DataTypeSize: 1},
			}})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Execute:
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("140000"), []byte("t"), []byte("f")}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Terminate:
			return nil
		}
	}
}

// TestOldServer checks that a server older than PostgreSQL 15 is refused at the connection. It gets
// no further query.
func TestOldServer(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- oldServer(l) }()
	h, err := Open("postgres:///t?user=u&host=" + dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Look(t.Context())
	var version *VersionError
	if !errors.As(err, &version) || !strings.Contains(err.Error(), "PostgreSQL 14 is too old: 15 or newer is needed") ||
		version.Hint() == "" {
		t.Errorf("%v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.Close(), l.Close()); err != nil {
		t.Error(err)
	}
}
