package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
)

// These names are for the tests in package store_test. Those tests make logs with package eventlog, which imports
// this package.
const (
	Chunk, ChunkBytes   = chunk, chunkBytes
	LookIdle, LookEvery = lookIdle, lookEvery
	Listed, Intended    = listed, intended
	IsOutcome           = isOutcome
)

func Literals(types []event.Type) string { return literals(types) }

func DB(r *Reader) *sqlx.DB { return r.db }

func Fetch(r *Reader, ctx context.Context, q event.Query, limit int) ([]event.Event, bool, error) {
	return r.fetchChunk(ctx, q, limit)
}

func Version(c *Changes, ctx context.Context) (int64, error) { return c.dataVersion(ctx) }

func Rest(c *Changes)               { c.came, c.last = time.Time{}, time.Now() }
func Came(c *Changes) time.Time     { return c.came }
func LastLook(c *Changes) time.Time { return c.last }

// Changed returns nil if the system does not report changes.
func Changed(c *Changes) <-chan struct{} {
	if c.folders == nil {
		return nil
	}
	return c.folders.changed
}
