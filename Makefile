# What people do with this tree. Nothing here is needed to use it: see README.md.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
FUZZTIME ?= 30s
SEED ?= 1

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz bench torture clients sdks golden ci dist clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./perlica
	CGO_ENABLED=0 go build -trimpath -ldflags '-X main.version=$(VERSION)' -o perlica ./cmd/perlica

test: ## run the tests
	go test ./...

race: ## run the tests with the race detector
	.ci/run race

lint: ## gofmt, go vet, staticcheck
	.ci/run lint

fuzz: ## run every fuzz target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) .ci/run fuzz

bench: ## measure against bare programs, then run Go's benchmarks
	go run ./cmd/bench
	go test ./service/web -run 'TestBrowser/^many$$' -v | grep 'longest task' || echo "the page is not measured: there is no Chromium"
	go test -run '^$$' -bench . -benchmem ./...

torture: ## crash states, kills, power cuts, damage, shells: an hour or less (Linux; root for the power cuts)
	go test ./policy/shell -run 'TestOracle$$' -oracle 20000 -oracle-seed $(SEED) -timeout 60m -v
	go test ./kernel/report -run 'TestVerifiersAgree$$' -agree 2000 -agree-seed $(SEED) -timeout 30m -v
	go test ./service/acp -run 'TestTorture$$' -torture-kills 500 -torture-seed $(SEED) -timeout 30m -v
	go test ./service -run 'TestTorture$$' -torture-messages 500 -torture-seed $(SEED) -timeout 30m -v
	go test ./eventlog -run 'TestTorture|TestCrowd|TestTamper|TestFlip' -torture 100000 -powercuts 100 -flips 2500 -seed $(SEED) -timeout 2h -v

clients: ## acpx and the TypeScript SDK in front of real agents, which PERLICA_REAL_AGENT starts: see CONTRIBUTING.md
	go test ./cmd/perlica -run 'TestRealAgents$$' -timeout 30m -v

sdks: ## what the makers' Go SDKs read in the recorded streams of models; minutes of compiling
	cd provider/model/testdata/sdk && go test -count=1 . -update
	go test ./provider/model -run TestSDKsAgree

golden: ## rewrite golden files and what the documents take from the code
	go test . -run TestAPI -update
	go test ./cmd/perlica -run TestFlagsInDocs -update
	go test ./eventlog -run TestFormatPage -update
	go test ./kernel/config -update
	go test ./kernel/report -update
	go test ./provider/registry -run TestAgentsTable -update-agents
	go test ./provider/predictable -run TestDocs -update
	git diff --stat

ci: ## everything that must hold before a change lands
	.ci/run

dist: ## static binaries for all systems in dist/, with checksums
	rm -rf dist
	mkdir dist
	set -e; for t in $(TARGETS); do \
		os=$${t%/*} arch=$${t#*/} name=perlica_$(VERSION)_$${t%/*}_$${t#*/}; \
		exe=perlica; if [ $$os = windows ]; then exe=perlica.exe; fi; \
		mkdir dist/$$name; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -buildvcs=false \
			-ldflags '-s -w -X main.version=$(VERSION)' -o dist/$$name/$$exe ./cmd/perlica; \
		cp LICENSE README.md dist/$$name/; \
		(cd dist && tar -cf - $$name | gzip -n -9 > $$name.tar.gz); \
		rm -r dist/$$name; \
		echo dist/$$name.tar.gz; \
	done
	cd dist && if command -v sha256sum >/dev/null; then sha256sum *.tar.gz; else shasum -a 256 *.tar.gz; fi > SHA256SUMS

clean: ## remove what make built
	rm -rf dist perlica
