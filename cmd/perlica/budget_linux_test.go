package main

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// oneCall is a budget that is used up after one call.
const oneCall = "[[budget]]\nper = \"month\"\ncalls = 1\ntimezone = \"UTC\"\n"

// TestBudgetOfACrowd checks that 50 processes at a budget of 10 calls make exactly 10 calls.
func TestBudgetOfACrowd(t *testing.T) {
	w := newWorld(t)
	w.config(strings.Replace(oneCall, "1\n", "10\nscope = \"user\"\n", 1))
	var all sync.WaitGroup
	var called, refused atomic.Int32
	for range 50 {
		all.Go(func() {
			j := w.start("run", "hello")
			switch code := j.wait(); code {
			case 0:
				called.Add(1)
			case 10:
				refused.Add(1)
			default:
				t.Errorf("exit code %d: %s", code, j.stderr.String())
			}
		})
	}
	all.Wait()
	if called.Load() != 10 || refused.Load() != 40 || w.prompts() != 10 {
		t.Errorf("%d calls, %d refusals, %d prompts; want 10, 40, 10", called.Load(), refused.Load(), w.prompts())
	}
	w.audit()
}

// twoCalls is a budget that is nearly used up by the second of its calls.
var twoCalls = strings.Replace(oneCall, "calls = 1", "calls = 2", 1)

// TestBudgetInTheChat checks that the chat warns once, shows a refusal and the budget, and remains usable.
func TestBudgetInTheChat(t *testing.T) {
	w := newWorld(t)
	w.config(twoCalls)
	s := w.chat()
	s.press("first\r")
	s.expect("You said: first")
	s.press("hello\r")
	s.expect("the budget (month calls=2) is nearly used up: 2 of 2 calls are used")
	s.expect("You said: hello")
	s.press("again\r")
	s.expect("the budget (month calls=2) refuses the call: 2 of 2 calls are used")
	s.press("\x15/budget\r") // the refused text is in the line again
	s.expect("2 of 2 calls used, 0 left")
	s.bye()
	if n := w.prompts(); n != 2 {
		t.Errorf("%d prompts, want 2", n)
	}
	w.audit()
}

// TestBudgetOnThePhone checks that a phone gets the warning once, and the refusal in its language.
func TestBudgetOnThePhone(t *testing.T) {
	w := newWorld(t)
	w.config(twoCalls)
	s := w.service()
	p := w.phone("boss", "ask,approve,admin")
	p.says("first")
	p.hears("You said: first")
	p.says("hello")
	p.hears("You said: hello")
	p.hears("the budget (month calls=2) is nearly used up: 2 of 2 calls are used")
	p.hearsBack("again", "the budget (month calls=2) refuses the call: 2 of 2 calls are used")
	p.hearsBack("/budget", "2 of 2 calls used, 0 left")
	p.hearsBack("/language zh", "中文")
	p.hearsBack("again", "预算（month calls=2）拒绝了这次调用")
	s.signal(syscall.SIGTERM)
	s.exits(0)
	if n := w.prompts(); n != 2 {
		t.Errorf("%d prompts, want 2", n)
	}
}
