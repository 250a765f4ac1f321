package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/perlica/perlica/eventlog/event"
)

// What tests from outside look at: they make their logs with package eventlog, which imports this one.
const (
	Chunk, ChunkBytes   = chunk, chunkBytes
	LookIdle, LookEvery = lookIdle, lookEvery
	Listed, Intended    = listed, intended
	IsOutcome           = isOutcome
)

func Literals(types []event.Type) string { return literals(types) }

func DB(r *Reader) *sqlx.DB { return r.db }

func Fetch(r *Reader, ctx context.Context, q event.Query, limit int) ([]event.Event, bool, error) {
	return r.fetch(ctx, q, limit)
}

func Version(c *Changes, ctx context.Context) (int64, error) { return c.version(ctx) }

func Rest(c *Changes)               { c.came, c.last = time.Time{}, time.Now() }
func Came(c *Changes) time.Time     { return c.came }
func LastLook(c *Changes) time.Time { return c.last }

// Changed is nil where the system does not tell.
func Changed(c *Changes) <-chan struct{} {
	if c.folders == nil {
		return nil
	}
	return c.folders.changed
}
