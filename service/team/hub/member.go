package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Ask writes a request to join the team to the hub. It does not replace an earlier request with the same name.
func (h *Hub) Ask(ctx context.Context, name, key string) error {
	return h.exec(ctx, `
		INSERT INTO perlica.requests (name, key, login)
		VALUES ($1, $2, current_user)
		ON CONFLICT DO NOTHING`, name, key)
}

// Requests returns the requests to join, oldest first.
func (h *Hub) Requests(ctx context.Context) (list []JoinRequest, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT name, key, login, made
			FROM perlica.requests
			ORDER BY made`)
		if err == nil {
			list, err = collect[JoinRequest](rows)
		}
		return err
	})
	return list, err
}

// Members returns all statements about members in the order in which they were made.
func (h *Hub) Members(ctx context.Context) (list []Member, err error) {
	err = h.do(ctx, func(ctx context.Context, c *Conn) error {
		rows, err := c.query(ctx, `
			SELECT name, version, key, rights, gone, login, signer, signature, made
			FROM perlica.members
			ORDER BY made, name, version`)
		if err == nil {
			list, err = collect[Member](rows)
		}
		return err
	})
	return list, err
}

// State writes a statement about a member to the hub. It deletes the request to join that the statement answers.
func (h *Hub) State(ctx context.Context, m Member) error {
	return h.do(ctx, func(ctx context.Context, c *Conn) error {
		return c.transact(ctx, func() error {
			_, err := c.Exec(ctx, `
				INSERT INTO perlica.members (name, version, key, rights, gone, login, signer, signature)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
				m.Name, m.Version, m.Key, m.Rights, m.Gone, m.Login, m.Signer, m.Signature)
			var pg *pgconn.PgError
			if errors.As(err, &pg) && pg.Code == stateUnique {
				return fmt.Errorf("hub: somebody has just said something else about %s: try again", m.Name)
			}
			if err != nil {
				return err
			}
			_, err = c.Exec(ctx, `
				DELETE FROM perlica.requests
				WHERE name = $1`, m.Name)
			return err
		})
	})
}
