package service_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/local"
	"github.com/perlica/perlica/service/team"
	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// TestTeamOnThePhone checks that a worker's question reaches the contacts that may answer every
// question. It names its origin and all details. Each way of answering reaches the worker, and the
// run continues. The machine's log names the answering contact.
func TestTeamOnThePhone(t *testing.T) {
	c := newCrew(t, direct, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice, everything()...)
	w.pair(s, bob)
	label := "ALICE (local:" + alice.Contact + ")"
	n := 0
	for how, answer := range map[string]func(local.Arrived, string) string{
		"number":  func(local.Arrived, string) string { return alice.say("1") },
		"id":      func(_ local.Arrived, id string) string { return alice.say("#" + id + " 1") },
		"reply":   func(a local.Arrived, _ string) string { return alice.Say(local.Message{ReplyTo: a.Key, Text: "1"}) },
		"allow":   func(_ local.Arrived, id string) string { return alice.say("/allow " + id) },
		"bare":    func(local.Arrived, string) string { return alice.say("/allow") },
		"choose":  func(_ local.Arrived, id string) string { return alice.say("/choose #" + id + " 1") },
		"deny":    func(_ local.Arrived, id string) string { return alice.say("/deny " + id) },
		"pending": func(_ local.Arrived, id string) string { return alice.say("/pending") },
	} {
		if testing.Short() && how != "number" && how != "deny" {
			continue
		}
		c.submit(how, `@ask execute "Do `+how+`" command="make `+how+` all"`)
		card := alice.expect("Do " + how)
		for _, text := range []string{"build", "website", "make " + how + " all", "input " + how} {
			if !strings.Contains(card.Text, text) {
				t.Errorf("the card does not say %q: %s", text, card.Text)
			}
		}
		id := strings.TrimPrefix(asking.FindStringSubmatch(card.Text)[1], "#")
		alice.say("/allow " + id + " but not really")
		alice.expect("use it as")
		if answer(card, id); how == "pending" {
			if a := alice.expect("make pending all"); !strings.Contains(a.Text, id) || !strings.Contains(a.Text, "build") {
				t.Errorf("/pending: %s", a.Text)
			}
			alice.say("#" + id + " 1")
		}
		end := alice.expect("answered at", tooSoon, "not clear which question")
		// The answer is refused if it comes too soon after the card. The person then answers again after some time.
		if !strings.Contains(end.Text, "answered at") {
			w.reads()
			answer(card, id)
			end = alice.expect("answered at")
		}
		if !strings.Contains(end.Text, label) || !strings.Contains(end.Text, "build") {
			t.Errorf("the card does not say who answered: %s", end.Text)
		}
		if yes := c.allowed(how); (yes == 1) != (how != "deny") {
			t.Errorf("%s: %d yeses", how, yes)
		}
		n++
	}
	// Some answers need a word or "always" in addition to the number. This also holds for a worker's question.
	for id, text := range map[string]string{"word": `@ask execute "Wipe" command="rm -rf /"`,
		"always": `@ask execute "Build" command="make"`} {
		c.submit(id, text)
		short := asking.FindStringSubmatch(alice.expect("or with `#").Text)[1]
		q, said := c.questions(1)[0], short+" 1"
		if id == "always" {
			said = short + " 4"
		}
		alice.say(said)
		if id == "word" {
			alice.expect("needs the word")
			alice.say(said + " " + q.Word)
		} else {
			alice.expect("Nothing was answered")
			alice.say(said + " always")
		}
		alice.expect("answered at")
		if c.allowed(id) != 1 {
			t.Errorf("%s: the yes did not count", id)
		}
		n++
	}
	if got := c.given(); len(got) != n || got[0] != label+" local" {
		t.Errorf("on record: %q", got)
	}
	// The hub loses the ends of all questions, so they look open. The bridge asks none of them again.
	cards := alice.count("or with `#")
	c.s.SQL(t, c.db, `UPDATE perlica.questions SET closed = NULL`)
	c.submit("last", `@ask execute "The last" command="make"`)
	alice.expect("The last")
	if k := alice.count("or with `#"); k != cards+1 {
		t.Errorf("%d cards more", k-cards)
	}
	if k := bob.count("Do "); k != 0 {
		t.Errorf("one who may not answer everybody's questions got %d cards", k)
	}
	bob.say("hello")
	bob.expect("You said: hello")
}

// TestTeamFirst checks that the sender of a late answer learns the first answer. The same holds for the second of two
// answers from this machine.
func TestTeamFirst(t *testing.T) {
	c := newCrew(t, direct, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice := w.phone("alice")
	w.pair(s, alice, everything()...)
	yes := func(q team.OpenQuestion) interaction.Answer {
		o, _ := q.First("allow_once")
		return interaction.Answer{Option: o.ID, By: "somebody", Where: "terminal"}
	}
	// The answer must arrive before the bridge itself has seen the end of the question. Otherwise the test tries again.
	for i, told := 0, false; !told; i++ {
		id := "late" + string(rune('a'+i))
		c.submit(id, `@ask execute "Late" command=make`)
		card := alice.expect("Late")
		if err := c.build.Answer(t.Context(), c.questions(1)[0].There, yes(c.questions(1)[0])); err != nil {
			t.Fatal(err)
		}
		m := alice.Say(local.Message{ReplyTo: card.Key, Text: "2"})
		a := alice.wait(func(a local.Arrived) bool { return strings.HasSuffix(a.ReplyTo, m) })
		switch {
		case strings.Contains(a.Text, "does not count: build answered at") && strings.Contains(a.Text, "from team: "):
			told = true
		case !strings.Contains(a.Text, "not open to you any more") || i > 10:
			t.Fatalf("who was late was told %q", a.Text)
		}
		if end := alice.expect("build answered at"); !strings.Contains(end.Text, "Late") {
			end = alice.expect("build answered at") // after the reply to the answer
			_ = end
		}
		if c.allowed(id) != 1 {
			t.Error("the first answer did not count")
		}
	}
	// Another person on this machine has answered, and the worker has not accepted this answer.
	c.submit("otherwise", `@ask execute "Otherwise" command=make`)
	card := alice.expect("Otherwise")
	q := c.questions(1)[0]
	if _, err := c.build.Hub.Propose(t.Context(), hub.Answer{Question: q.There.ID, Member: "alice", Option: yes(q).Option,
		Signature: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	alice.Say(local.Message{ReplyTo: card.Key, Text: "2"})
	alice.expect("this machine has given another answer before")
	if err := c.build.Answer(t.Context(), q.There, yes(q)); err != nil {
		t.Fatal(err)
	}
	alice.expect("build answered at")
}

// TestTeamForged checks that a question changed on the hub is a different question. A yes to the
// first one does not count, and its card is closed.
func TestTeamForged(t *testing.T) {
	c := newCrew(t, direct, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice := w.phone("alice")
	w.pair(s, alice, everything()...)
	c.submit("a", `@ask execute "Build" command="make"`)
	first := alice.expect("Build")
	c.s.SQL(t, c.db,
		`UPDATE perlica.inputs SET project = 'other'; UPDATE perlica.questions SET question = replace(question::text, '"make"', '"make clean"')::json`)
	forged := alice.expect("make clean")
	if !strings.Contains(forged.Text, "without the signature of its sender") {
		t.Errorf("an input that nobody signed: %s", forged.Text)
	}
	alice.expect("no longer has it")
	alice.Say(local.Message{ReplyTo: first.Key, Text: "1"})
	alice.expect("not open to you any more")
	alice.allow(forged)
	alice.expect("does not count")
	if n := len(c.questions(1)); n != 1 {
		t.Error("the question was answered")
	}
}

// TestTeamAway checks that a silent hub delays nothing here. An answering contact is told in its
// language that the answer did not count, and can answer again when the hub is back.
func TestTeamAway(t *testing.T) {
	var p *hubtest.Proxy
	c := newCrew(t, func(s *hubtest.Server, db string) string {
		p = hubtest.NewProxy(t, s)
		return p.URL("owner", db)
	}, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice, everything()...)
	w.pair(s, bob, everything()...)
	bob.say("/language zh")
	bob.expect("从现在起")
	c.submit("a", `@ask execute "Build" command="make"`)
	card, zh := alice.expect("Build"), bob.expect("Build")
	if !strings.Contains(zh.Text, "团队的工作机 **build**") && !strings.Contains(zh.Text, "团队的工作机 build") {
		t.Errorf("not in Chinese: %s", zh.Text)
	}
	p.Cut()
	alice.Say(local.Message{ReplyTo: card.Key, Text: "1"})
	bob.Say(local.Message{ReplyTo: zh.Key, Text: "1"})
	begin := time.Now()
	carol := w.phone("carol")
	w.pair(s, carol)
	carol.say(`@ask execute "Here" command="ls"`)
	carol.expect("Here")
	carol.answers(w, local.Message{Text: "1"}, "permission: allow")
	alice.say("/queue")
	alice.expect("You have no waiting messages")
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("what happens here took %s", took)
	}
	alice.wait(func(a local.Arrived) bool { return strings.Contains(a.Text, "hub cannot be reached") })
	if a := bob.expect("无法连接"); sentence.MatchString(notOurs.ReplaceAllString(a.Text, "")) {
		t.Errorf("English: %s", a.Text)
	}
	said := func() int {
		live, err := s.Live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(strings.Join(live.Errors, "\n"), "the questions of the team cannot be read")
	}
	for said() == 0 {
		pause(50 * time.Millisecond)
	}
	p.Restore()
	alice.Say(local.Message{ReplyTo: card.Key, Text: "1"})
	alice.expect("answered at")
	bob.expect("回答：")
	if c.allowed("a") != 1 {
		t.Error("the answer did not count")
	}
	bob.mu.Lock()
	for i := slices.IndexFunc(bob.arrived, func(a local.Arrived) bool { return a.Key == zh.Key }); i < len(
		bob.arrived); i++ {
		if words := sentence.FindString(notOurs.ReplaceAllString(bob.arrived[i].Text, "")); words != "" {
			t.Errorf("%q in %s", words, bob.arrived[i].Text)
		}
	}
	bob.mu.Unlock()
	if n := said(); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// TestTeamKilled kills a bridge with open cards. No card is sent twice, and the next bridge accepts
// the answers. It also settles an answer that the killed bridge had received.
func TestTeamKilled(t *testing.T) {
	points := []string{"", "question of the team", "before card", "behind card", "question closed"}
	if testing.Short() {
		points = points[:1]
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			c := newCrew(t, direct, access.Ask, access.Approve)
			w := newWorld(t)
			alice := w.phone("alice")
			s := w.serve(local.DefaultLimits())
			w.pair(s, alice, everything()...)
			if err := s.stop(); err != nil {
				t.Fatal(err)
			}
			// The worker has counted the answer, and the bridge does not know it.
			if point == "question closed" {
				alice.mu.Lock()
				alice.also = alice.allow
				alice.mu.Unlock()
			}
			v := w.spawn("bridge", 0, dieVar+"="+point, homeVar+"="+c.home, hubVar+"="+c.url)
			defer v.kill()
			c.submit("a", `@ask execute "Build" command="make"`)
			if point == "" {
				alice.expect("Build")
				v.kill()
			} else if err := v.Wait(); err == nil {
				t.Fatal("the bridge did not die")
			}
			c.serve(w)
			switch point {
			case "question closed":
			case "":
				card := alice.wait(func(a local.Arrived) bool { return strings.Contains(a.Text, "Build") })
				alice.Say(local.Message{ReplyTo: card.Key, Text: "1"})
			default:
				alice.allow(alice.wait(func(a local.Arrived) bool { return strings.Contains(a.Text, "Build") }))
			}
			alice.wait(func(a local.Arrived) bool {
				return strings.Contains(a.Text, "ALICE (local:"+alice.Contact+") answered at")
			})
			if c.allowed("a") != 1 {
				t.Error("the answer did not count")
			}
			cards := map[string]bool{}
			alice.mu.Lock()
			for _, a := range alice.arrived {
				if asking.MatchString(a.Text) {
					cards[a.Key] = true
				}
				if strings.Contains(a.Text, "does not count") || strings.Contains(a.Text, "not open") {
					t.Errorf("an answer that counts was refused: %s", a.Text)
				}
			}
			alice.mu.Unlock()
			if len(cards) != 1 {
				t.Errorf("%d cards", len(cards))
			}
		})
	}
}

// TestTeamEndsUnseen checks that the next bridge closes the card of a question that ended while no
// bridge ran.
func TestTeamEndsUnseen(t *testing.T) {
	c := newCrew(t, direct, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice := w.phone("alice")
	w.pair(s, alice, everything()...)
	c.submit("a", `@ask execute "Build" command="make"`)
	alice.expect("Build")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	q := c.questions(1)[0]
	o, _ := q.First("reject_once")
	if err := c.build.Answer(t.Context(), q.There, interaction.Answer{Option: o.ID, By: "test"}); err != nil {
		t.Fatal(err)
	}
	s = c.serve(w)
	alice.expect("build answered at")
	c.submit("b", `@ask execute "Again" command="make"`)
	alice.expect("Again")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	// This bridge belongs to no team.
	w.serve(local.DefaultLimits())
	alice.expect("no longer shows questions of the team")
}

// TestTeamWithoutRight checks that a machine without the right to answer shows no questions and
// says so once.
func TestTeamWithoutRight(t *testing.T) {
	c := newCrew(t, direct, access.Ask)
	w := newWorld(t)
	s := c.serve(w)
	alice := w.phone("alice")
	w.pair(s, alice, everything()...)
	c.submit("a", `@ask execute "Build" command="make"`)
	c.questions(1)
	said := func() int {
		live, err := s.Live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(strings.Join(live.Errors, "\n"), "are not shown")
	}
	for said() == 0 {
		pause(50 * time.Millisecond)
	}
	alice.say("hello")
	alice.expect("You said: hello")
	if said() != 1 || alice.count("Build") != 0 {
		t.Errorf("said %d times, %d cards", said(), alice.count("Build"))
	}
}

// TestTeamSilent checks a worker that does not react to an answer. The sender is told so, and other
// answers still work in the meantime.
func TestTeamSilent(t *testing.T) {
	if testing.Short() {
		t.Skip("the worker is waited for, for half a minute")
	}
	c := newCrew(t, direct, access.Ask, access.Approve)
	w := newWorld(t)
	s := c.serve(w)
	alice := w.phone("alice")
	w.pair(s, alice, everything()...)
	c.submit("a", `@ask execute "Build" command="make"`)
	other := alice.expect("Build")
	c.s.SQL(t, c.db, `
		INSERT INTO perlica.questions (id, input, worker, question)
		SELECT 'x', input, worker, replace(replace(question::text, id, 'x'), '"make"', '"make silent"')::json FROM perlica.questions`)
	silent := alice.expect("make silent")
	alice.allow(silent)
	alice.allow(other)
	alice.expect("answered at")
	if c.allowed("a") != 1 {
		t.Error("the other answer did not count")
	}
	alice.expect("has not confirmed your answer yet")
}
