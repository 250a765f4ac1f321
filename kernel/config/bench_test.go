package config

import (
	"os"
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	env := os.Environ()
	run := func(name string, prepare func(*place)) {
		b.Run(name, func(b *testing.B) {
			p := newPlace(b)
			prepare(p)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(p.ws, p.dirs, env, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("none", func(p *place) { p.ws.Exists = false })
	run("small", func(p *place) {
		p.user("[model]\ndefault_provider = 'claude'\n[providers.claude.acp]\nconnect_timeout = '10s'\n")
		p.project(defaultFile() + "[[policy.rule]]\neffect = 'deny'\nkind = ['edit']\n[[policy.rule]]\neffect = 'allow'\n")
	})
}

func BenchmarkFindAndEnsure(b *testing.B) {
	p := newPlace(b)
	for b.Loop() {
		ws, err := Find(p.ws.Root, p.dirs.Home)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := ws.Ensure("default"); err != nil {
			b.Fatal(err)
		}
	}
}
