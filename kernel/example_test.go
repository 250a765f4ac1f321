package kernel_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/agents"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/record"
	"github.com/perlica/perlica/policy"
	"github.com/perlica/perlica/provider"
)

// Example opens a session, streams an answer, allows a question and reads the record.
func Example() {
	home, dir, environ, agent := exampleWorld() // defined below
	defer os.RemoveAll(home)

	ctx := context.Background()
	p, err := project.Find(dir, environ, nil) // a program passes os.Environ()
	check(err)
	r, done, err := p.Open(ctx, "example")
	check(err)
	defer done()
	_, err = r.Recover(ctx) // records the outcomes of runs that ended with their killed process
	check(err)

	chat, err := r.Converse(ctx, kernel.Setup{Agent: agent, Dir: dir}, 10*time.Minute, "example")
	check(err)
	defer chat.Close(ctx)
	chat.Warm() // the agent starts while the person is still typing

	res, err := chat.Run(ctx, kernel.Turn{
		Input:       kernel.Input{Text: "@say Hello.\\n\n@ask execute Build command=make", Source: "example", Sender: "me"},
		Permissions: policy.ModeAsk, AnswerIn: time.Minute,
		Show: func(n record.Notice) {
			switch n := n.(type) {
			case record.Updated:
				fmt.Print(n.Text)
			case record.Asked:
				yes, _ := n.First("allow_once")
				check(r.Questions().Answer(ctx, n.ID, interaction.Answer{Option: yes.ID, By: "me", Where: "example"}))
			}
		},
	})
	check(err)
	fmt.Println(res.Outcome)
	for e, err := range r.Log().Events(ctx, event.Query{Run: res.Run, Class: event.Fact}) {
		check(err)
		fmt.Println(e.Type)
	}
	// Output:
	// Hello.
	// permission: allow-once
	// responded
	// inbound.message.received
	// llm.requested
	// interaction.requested
	// interaction.answered
	// acp.reply.sent
	// interaction.resolved
	// llm.responded
	// llm.single_call.enforced
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// exampleWorld creates a home, a project and an agent for the example. The agent is this test binary, which carries out
// the prompt. A program would get its agent from agents.Resolver{…}.Default or Named.
func exampleWorld() (home, dir string, environ []string, agent agents.Agent) {
	home, err := os.MkdirTemp("", "perlica-example")
	check(err)
	dir = filepath.Join(home, "project")
	check(os.Mkdir(dir, 0o700))
	self, err := os.Executable()
	check(err)
	return home, dir, append(os.Environ(), "PERLICA_HOME="+home,
			"KERNEL_TEST_SCENARIO=#"), agents.Agent{Agent: provider.Agent{
			ID: "example", Command: []string{self, "-test.run=^TestAgentProcess$"}, Env: []string{"KERNEL_TEST_SCENARIO"},
		}}
}
