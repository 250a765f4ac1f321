package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// play shows the steps of the demonstration.
func (s *stage) play(ctx context.Context) error {
	s.tell("Perlica stands between you and a coding agent. Its built-in agent plays here:",
		"it echoes text, and a line that begins with @ tells it an action.",
		"No account is needed, and no model is called. Everything lies in a new folder:", "  "+s.dir)
	steps := []struct {
		title string
		play  func(context.Context) error
	}{
		{"One input makes at most one call", s.playCall},
		{"Only you or your rule says yes", s.playQuestion},
		{"A kill in the middle of an answer", s.playKill},
		{"A forged event is found", s.playForgery},
		{"A stranger checks one decision", s.playProof},
	}
	for i, step := range steps {
		if err := s.wait(ctx); err != nil {
			return err
		}
		s.tell("", s.styles.Cyan(fmt.Sprintf("%d of %d  %s", i+1, len(steps), step.title)))
		if err := step.play(ctx); err != nil {
			return err
		}
	}
	s.tell("")
	return s.failed
}

func runOf(input, text string) []string {
	return []string{"run", "--provider", "predictable", "--input-id", input, text}
}

func (s *stage) playCall(ctx context.Context) error {
	hello := runOf("hello-1", "hello")
	if err := s.act(ctx, "This input has an id. The agent gets it once.", 0, hello...); err != nil {
		return err
	}
	return s.act(ctx, "The same input again gets the recorded answer, and the agent is not called.", 0, hello...)
}

// These are the texts of the question, and the text of the forger.
const (
	oldPrice, newPrice, forgedPrice = "tea:100", "tea:110", "tea:910"

	question = `@ask edit "New price" path=prices.txt old="` + oldPrice + `\n" new="` + newPrice + `\n"`
)

func (s *stage) playQuestion(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(s.project, "prices.txt"), []byte(oldPrice+"\n"), 0o600); err != nil {
		return err
	}
	sentence, code := "The agent asks before it edits a file. You answer with one key: y or n.", 0
	if !s.attended {
		sentence, code = "The agent asks before it edits a file. Nobody is here, so the answer is no.", 5
	}
	if err := s.act(ctx, sentence, code, runOf("price-1", question)...); err != nil {
		return err
	}
	return s.act(ctx, "The record has the question with its diff, and the answer with its place.", 0,
		"log", "show", "price-1")
}

func (s *stage) playKill(ctx context.Context) error {
	poem := runOf("poem-1", "Write a long poem\n@hang")
	s.announce("The agent begins to answer. Then Perlica is killed.", poem)
	cmd := s.command(ctx, poem)
	out := &output{to: s.Stdout, want: "poem", found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return cmp.Or(s.check(ctx, cmd, err, 0), errors.New("the run ended before it could be killed"))
	case <-out.found:
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	<-ended // A killed process always ends with an error.
	out.endLine()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.tell(s.styles.Bold(fmt.Sprintf("$ kill -KILL %d", cmd.Process.Pid)))
	for _, next := range []struct {
		sentence string
		code     int
		args     []string
	}{
		{"Nobody knows how far the agent came. Perlica says so and sends nothing again.", 6, poem},
		{"The open cases have all known facts.", 0, []string{"log", "open"}},
		{"You find out the truth and put it on record.", 0,
			[]string{"log", "resolve", "poem-1", "--sent", "--note", "the agent wrote one line of the poem"}},
	} {
		if err := s.act(ctx, next.sentence, next.code, next.args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) playForgery(ctx context.Context) error {
	if err := s.act(ctx, "Anyone can compute all hashes of the log again.", 0, "log", "verify"); err != nil {
		return err
	}
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		return err
	}
	if b = bytes.ReplaceAll(b, []byte(newPrice), []byte(forgedPrice)); !bytes.Contains(b, []byte(forgedPrice)) {
		return fmt.Errorf("the text %q is not in the file of the log", newPrice)
	}
	const forged = "forged.db"
	if err := os.WriteFile(filepath.Join(s.project, forged), b, 0o600); err != nil {
		return err
	}
	sentence := "A forger copied the log to " + forged + " and wrote " + forgedPrice + " in place of " + newPrice + "."
	return s.act(ctx, sentence, 1, "log", "verify", forged)
}

func (s *stage) playProof(ctx context.Context) error {
	event, err := s.read(ctx, "log", "tail", "-n", "1", "--type", "interaction.requested", "--json")
	if err != nil {
		return err
	}
	var asked struct {
		ID string `json:"interaction_id"`
	}
	if err := json.Unmarshal(event, &asked); err != nil {
		return err
	}
	const file = "decision.proof"
	id := frame.ShortID(asked.ID)
	if err := s.act(ctx, "This file proves the question and its answer, and nothing else of the log.", 0,
		"log", "prove", id, "-o", filepath.Join("..", "stranger", file)); err != nil {
		return err
	}
	list, err := s.read(ctx, "log", "key", "show", "--json")
	if err != nil {
		return err
	}
	var keys struct {
		Keys []struct {
			Key string `json:"key"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(list, &keys); err != nil {
		return err
	}
	if len(keys.Keys) == 0 {
		return errors.New("there is no key for checkpoints")
	}
	check := []string{"log", "verify", "--proof", file, "--key", keys.Keys[0].Key}
	s.announce("A stranger has the file and your key. The stranger needs no log and no network.", check)
	cmd := s.command(ctx, check)
	cmd.Dir, cmd.Env = s.stranger, environ(s.env, filepath.Join(s.stranger, "home"))
	out, err := cmd.CombinedOutput()
	if err := s.check(ctx, cmd, err, 0); err != nil {
		s.print(string(out))
		return err
	}
	s.print(shorten(string(out)))
	return nil
}

// shorten leaves out the middle of a proof, which contains the whole question.
func shorten(proof string) string {
	const first, last = 7, 8
	lines := strings.SplitAfter(proof, "\n")
	if len(lines) <= first+last {
		return proof
	}
	return strings.Join(lines[:first], "") + "…\n" + strings.Join(lines[len(lines)-last:], "")
}
