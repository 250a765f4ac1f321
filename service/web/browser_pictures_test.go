//go:build !race

package web

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var pictures = flag.String("pictures", "", "write the picture of docs/tutorial.md into this folder")

// testPictures takes the picture of docs/tutorial.md: the page with an open question. PERLICA_REAL_AGENT may start
// Claude Code, as for TestRealAgents of cmd/perlica. Otherwise the built-in agent asks.
func testPictures(t *testing.T, b *browser) {
	if *pictures == "" {
		t.Skip("no folder for pictures: see make pictures")
	}
	provider, input := "predictable", `@ask edit "Write greeting.txt" path=greeting.txt new=Hello`
	if real := os.Getenv("PERLICA_REAL_AGENT"); real != "" {
		provider, input = "claude", "WRITE greeting.txt Hello"
		argv := append(strings.Fields(real), "exec", provider, b.dirs[0])
		text := fmt.Sprintf("[providers.claude]\nadapter.command = %q\nadapter.args = [\"%s\"]\n", argv[0],
			strings.Join(argv[1:], `", "`))
		check(t, os.WriteFile(filepath.Join(b.opt.Dirs.Config, "config.toml"), []byte(text), 0o600))
	}
	p := b.paired("Ana's laptop", []int64{760, 895})
	b.do("POST", "/v1/inputs", object{"project": b.dirs[0], "provider": provider, "text": input}).want(202)
	p.sees("Write greeting.txt")
	p.wait("document.querySelector($?)", ready)
	js[any](p, `(() => {
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const node = walker.currentNode;
			node.data = node.data.replaceAll($?, '/home/ana/shop').replaceAll('project-0', 'shop');
		}
	})()`, b.dirs[0])
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	check(t, err)
	check(t, os.WriteFile(filepath.Join(*pictures, "page.png"), png, 0o644))
	b.answer(b.question(), "reject_once").want(200)
}
