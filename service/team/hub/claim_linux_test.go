package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// filled returns a hub with n waiting inputs in its queue. The last hundred require a rare label.
// Its server has settings in the form name=value.
func filled(t testing.TB, n int, settings ...string) (*Hub, *hubtest.Server) {
	t.Helper()
	s := hubtest.Start(t, settings...)
	h := open(t, s.URL("owner", "postgres"))
	found(t, h, "alice")
	submitted(t, h, newInput("first", "x"))
	gpu := newInput("gpu", "x")
	gpu.Labels = []string{"gpu"}
	submitted(t, h, gpu)
	s.SQL(t, "postgres", fmt.Sprintf(`
		SET session_replication_role = replica; -- the rows are as if they had been submitted: their keys need no look
		INSERT INTO perlica.inputs (id, generation, sender, digest, project, provider, labels, permissions, priority, replaces, attachments, signature)
		SELECT 'n' || n, 'g1', 'alice', 'd', 'p', '', '{}', 'ask', 0, '', '[]', ''
		FROM generate_series(1, %d) n;
		INSERT INTO perlica.payloads (input, part, piece, bytes) SELECT 'n' || n, 0, 0, 'x' FROM generate_series(1, %[1]d) n;
		INSERT INTO perlica.queue (input, generation, sender, lane, priority, ready)
		SELECT 'n' || n, 'g1', 'alice', CASE WHEN n > %[1]d - 100 THEN E'p\n\ngpu' ELSE E'p\n\n' END, n %% 3, true
		FROM generate_series(1, %[1]d) n;
		SET session_replication_role = origin;
		CREATE ROLE alice LOGIN IN ROLE perlica_member;
		UPDATE perlica.members SET login = 'alice'`, n))
	return open(t, s.URL("alice", "postgres")), s
}

// claimArgs returns the arguments of the worker's claim of one input.
func claimArgs() []any {
	return []any{worker.Name, worker.Projects, worker.Providers, worker.Labels, 1, "{}", SchemaVersion, short}
}

// literal returns a string, a number or a list of strings as SQL. The strings have no quotes.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return "'" + v + "'"
	case []string:
		list := []string{}
		for _, s := range v {
			list = append(list, literal(s))
		}
		return "ARRAY[" + strings.Join(list, ", ") + "]::text[]"
	}
	return fmt.Sprint(v)
}

// plan returns the server's plan for a claim and the number of touched pages of a queue's table and
// indexes.
func plan(t testing.TB, h *Hub, generic bool) (text string, pages int) {
	t.Helper()
	ctx := t.Context()
	err := h.do(ctx, func(ctx context.Context, c *Conn) error {
		mode := "force_custom_plan"
		if generic {
			mode = "force_generic_plan"
		}
		if err := c.run(ctx, "BEGIN; SET LOCAL plan_cache_mode = "+mode+
			"; PREPARE claim (text, text[], text[], text[], int, text, int, int) AS "+
			strings.ReplaceAll(claimSQL, "$6::jsonb", "($6::jsonb)")); err != nil {
			return err
		}
		defer func() { _ = c.rollback(ctx) }() // the claim must not stay
		var args []string
		for _, arg := range claimArgs() {
			args = append(args, literal(arg))
		}
		rows, err := c.query(ctx, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE claim ("+strings.Join(args, ", ")+")")
		if err != nil {
			return err
		}
		lines, err := collect[string](rows)
		if err != nil {
			return err
		}
		text = strings.Join(lines, "\n")
		return c.run(ctx, "DEALLOCATE claim")
	})
	if err != nil {
		t.Fatal(err)
	}
	// The plan prints this line for each step. The first line is the sum for the whole statement.
	if m := regexp.MustCompile(`Buffers: shared hit=(\d+)(?: read=(\d+))?`).FindStringSubmatch(text); m != nil {
		var read int
		_, _ = fmt.Sscan(m[2], &read) // without this part of the plan, read stays 0
		_, _ = fmt.Sscan(m[1], &pages)
		pages += read
	}
	return text, pages
}

// TestClaimPlan checks that a claim finds its rows by the index, for every estimate of the queue's
// size. It touches as many pages of a long queue as of a short one.
func TestClaimPlan(t *testing.T) {
	short, s1 := filled(t, 200)
	long, s2 := filled(t, 20_000)
	for _, known := range []bool{false, true} {
		if known {
			for _, s := range []*hubtest.Server{s1, s2} {
				s.SQL(t, "postgres", "ANALYZE perlica.queue")
			}
		}
		for _, generic := range []bool{false, true} {
			_, few := plan(t, short, generic)
			text, many := plan(t, long, generic)
			if !strings.Contains(text, "Index Scan using queue_ready on queue") || strings.Contains(text, "Seq Scan on queue") ||
				strings.Contains(text, "JIT:") {
				t.Errorf("analyzed %v, generic %v:\n%s", known, generic, text)
			}
			// A few more pages are no fault, because the indexes of the long queue may be a page or two deeper.
			if few == 0 || many > few+40 {
				t.Errorf("analyzed %v, generic %v: %d pages of a queue of 200, %d of one of 20,000:\n%s", known, generic, few, many,
					text)
			}
			t.Logf("analyzed %v, generic %v: %d and %d pages", known, generic, few, many)
		}
	}
}

// TestLongSteps checks that no table is read completely for each of thousands of inputs. The inputs
// are submitted and closed, and hundreds are claimed and reported. The server has not analyzed its
// tables since they were empty.
func TestLongSteps(t *testing.T) {
	h, s := filled(t, 0, "autovacuum=off")
	s.SQL(t, "postgres", "GRANT perlica_admin TO alice; ANALYZE")
	const batches, size = 10, 200
	for i := range batches {
		list := make([]Input, size)
		for n := range list {
			list[n] = newInput(fmt.Sprint("s", i, "-", n), "x")
		}
		submitted(t, h, list...)
	}
	for range size {
		answer(t, h)
	}
	if done, err := h.Adopt(t.Context(), "g2", "alice", true); err != nil || done.Queued < batches*size-size {
		t.Fatalf("got %v, %v; want err == nil && done.Queued >= batches*size - size", done, err)
	}
	// The server adds a connection's work to its statistics when the connection ends.
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	const most = (batches - 1) * size // the adoption closes all inputs except the claimed batch
	for table, rows := range map[string]int{"inputs": most, "closings": most, "payloads": most, "queue": most,
		"claims": size, "outcomes": size} {
		var whole, inserted int // complete reads of the table, and inserted rows
		for end := time.Now().Add(time.Minute); inserted < rows && time.Now().Before(end); {
			counts := s.SQL(t, "postgres",
				"SELECT seq_scan || ' ' || n_tup_ins FROM pg_stat_user_tables WHERE schemaname = 'perlica' AND relname = '"+table+
					"'")
			if _, err := fmt.Sscan(counts, &whole, &inserted); err != nil {
				t.Fatalf("got %v, %v; want err == nil", counts, err)
			}
		}
		if inserted < rows || whole > 3*batches {
			t.Errorf("%s: %d rows were inserted, and it was read whole %d times", table, inserted, whole)
		}
	}
}

// answer claims an input with its text and reports an outcome, as a worker does.
func answer(t testing.TB, h *Hub) {
	claims, err := h.Claim(t.Context(), worker, 1, nil)
	if err != nil || len(claims) != 1 || string(claims[0].Text) != "x" {
		t.Fatalf(`got %v, %v; want err == nil && len(claims) == 1 && string(claims[0].Text) == "x"`, claims, err)
	}
	if err := h.Report(t.Context(), worker.Name, claims[0].ID, "responded", json.RawMessage(`{}`),
		[]byte("s")); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkClaim measures an input's way through the hub, with queues of thousands and of a million
// inputs. It alternates with a bare queue of a million rows and as many commits: a row is deleted
// with SKIP LOCKED, and one is inserted. Commits reach the disk. of-bare is the rate relative to
// the bare queue; at least 0.5 is wanted.
func BenchmarkClaim(b *testing.B) {
	bare := bareQueue(b, 1_000_000)
	for _, n := range []int{20_000, 1_000_000} {
		b.Run(fmt.Sprint("queue=", n), func(b *testing.B) {
			h, s := filled(b, n, "fsync=on")
			s.SQL(b, "postgres", "ANALYZE")
			s.SQL(b, "postgres", "CHECKPOINT")
			var ours, theirs time.Duration
			for b.Loop() {
				begin := time.Now()
				answer(b, h)
				between := time.Now()
				bare(b)
				ours += between.Sub(begin)
				theirs += time.Since(between)
			}
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/op")
			b.ReportMetric(float64(theirs.Nanoseconds())/float64(b.N), "bare-ns/op")
			b.ReportMetric(float64(theirs)/float64(ours), "of-bare")
		})
	}
}

// bareQueue returns a function that moves a row from a queue to another table.
func bareQueue(b *testing.B, rows int) func(testing.TB) {
	s := hubtest.Start(b, "fsync=on")
	h := open(b, s.URL("owner", "postgres"))
	s.SQL(b, "postgres", fmt.Sprintf(`
		CREATE TABLE bare (n bigint PRIMARY KEY, text text);
		CREATE TABLE done (n bigint PRIMARY KEY, text text);
		INSERT INTO bare SELECT n, 'x' FROM generate_series(1, %d) n;
		ANALYZE;
		CHECKPOINT`, rows))
	return func(t testing.TB) {
		err := h.do(t.Context(), func(ctx context.Context, c *Conn) error {
			var n int64
			if err := c.QueryRow(ctx,
				`DELETE FROM public.bare WHERE n = (SELECT n FROM public.bare ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING n`).Scan(&n); err != nil {
				return err
			}
			_, err := c.Exec(ctx, `INSERT INTO public.done VALUES ($1, 'y')`, n)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
