//go:build !race

package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// testBelowPath checks pairing, following, sending and answering through a proxy that serves the
// page below a path. The proxy may remove the path or leave it.
func testBelowPath(t *testing.T, b *browser) {
	for _, takes := range []bool{true, false} {
		var to *url.URL
		proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
			if takes {
				r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/perlica")
			}
		}})
		defer proxy.Close()
		below := b.throughProxy(proxy.URL, "/perlica")
		var err error
		to, err = url.Parse(below.http.URL)
		check(t, err)
		below.works()
		proxy.CloseClientConnections()
	}
}

// testProxies checks the proxies of docs/web.md with the configurations from that page.
func testProxies(t *testing.T, b *browser) {
	for name, c := range map[string]struct {
		program, base string
		config        func(at, to string) string
	}{
		"Caddy": {"caddy", "", func(at, to string) string {
			return "{\n\tadmin off\n}\n" + docsBlock(t, "perlica.example.org {", "perlica.example.org", "http://"+at,
				"127.0.0.1:8788", to)
		}},
		"Caddy below a path": {"caddy", "/perlica", func(at, to string) string {
			return "{\n\tadmin off\n}\n" + docsBlock(t, "\nexample.org {", "example.org", "http://"+at, "127.0.0.1:8788", to)
		}},
		"nginx": {"nginx", "", func(at, to string) string {
			return nginx(at, docsBlock(t, "location / {", "127.0.0.1:8788", to)+
				docsBlock(t, "location = /acp {", "127.0.0.1:8788", to))
		}},
		"nginx below a path": {"nginx", "/perlica", func(at, to string) string {
			return nginx(at, docsBlock(t, "location / {", "/ {", "/perlica/ {", "127.0.0.1:8788", to)+
				docsBlock(t, "location = /acp {", "/acp {", "/perlica/acp {", "127.0.0.1:8788", to))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(c.program)
			if err != nil {
				if program, err = exec.LookPath("/usr/sbin/" + c.program); err != nil {
					t.Skip("NOT TESTED: the page after a proxy:", err)
				}
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			check(t, err)
			at := l.Addr().String()
			check(t, l.Close())
			here := &browser{t: t, ctx: b.ctx, world: b.world}
			below := here.throughProxy("http://"+at, c.base)
			dir := t.TempDir()
			config := filepath.Join(dir, "config")
			check(t, os.WriteFile(config, []byte(c.config(at, strings.TrimPrefix(below.http.URL, "http://"))), 0o600))
			argv := []string{"run", "--config", config, "--adapter", "caddyfile"}
			if c.program == "nginx" {
				argv = []string{"-p", dir, "-c", config}
			}
			cmd := exec.CommandContext(t.Context(), program, argv...)
			cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
			cmd.Stderr = os.Stderr
			check(t, cmd.Start())
			t.Cleanup(func() {
				// The process has no children.
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			for end := time.Now().Add(longest); ; {
				if c, err := net.Dial("tcp", at); err == nil {
					c.Close()
					break
				} else if time.Now().After(end) {
					t.Fatal(err)
				}
			}
			below.works()
		})
	}
}

// docsBlock returns the block of docs/web.md that begins with a line. It replaces some words.
func docsBlock(t *testing.T, begins string, others ...string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/web.md")
	check(t, err)
	_, block, ok := strings.Cut(string(text), "```\n"+strings.TrimPrefix(begins, "\n"))
	block, _, end := strings.Cut(block, "```")
	if !ok || !end {
		t.Fatalf("docs/web.md has no block that begins with %q", begins)
	}
	return strings.NewReplacer(others...).Replace(begins + block)
}

// nginx returns a complete configuration around a location.
func nginx(at, location string) string {
	return "daemon off;\nmaster_process off;\npid pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log " +
		"off;\nclient_body_temp_path t1;\nproxy_temp_path t2;\n" +
		"fastcgi_temp_path t3;\nuwsgi_temp_path t4;\nscgi_temp_path t5;\nserver {\nlisten " + at + ";\n" + location + "}\n}\n"
}

// throughProxy returns a world that a proxy serves at an address, below a path.
func (b *browser) throughProxy(proxy, base string) *browser {
	return &browser{t: b.t, ctx: b.ctx, proxy: proxy + base + "/", world: newWorld(b.t, 1, withPage, func(o *Options) {
		o.Base, o.Hosts = base, []string{strings.TrimPrefix(proxy, "http://")}
	})}
}

// works pairs a page, sends an input, follows its turn, answers a question, and connects an ACP
// client.
func (b *browser) works() {
	b.t.Helper()
	p := b.paired("phone", phone)
	p.visit("#/new")
	p.wait("document.querySelector('select[name=provider] option')")
	p.fill(`@ask execute "Build it" command=make`)
	p.click(".composer .send")
	p.wait("document.querySelector($?)", ready)
	p.click(ready)
	p.wait("document.querySelector('.turn .outcome')")
	if got := js[string](p, turns); !strings.Contains(got, "permission: allow-once") {
		b.t.Errorf("the turn: %s", got)
	}
	res, err := http.Get(b.proxy + "v1/runs")
	check(b.t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		b.t.Errorf("a stranger gets %d", res.StatusCode)
	}
	c, _, err := b.world.dialAt(strings.TrimSuffix(b.proxy, "/"), b.world.token, "")
	check(b.t, err)
	c.initialize()
	// The blank page ends the stream.
	p.do(chromedp.Navigate("about:blank"))
}
