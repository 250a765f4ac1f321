# What people do with this tree. Nothing here is needed to use it: see README.md.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
FUZZTIME ?= 30s
SEED ?= 1

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz bench measure torture torture-team clients sdks pictures golden ci dist dist-same dist-try wine clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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
	go test ./service/web -run 'TestBrowser/^many$$' -many 10000 -v | grep -a 'longest task' || echo "the page is not measured: there is no Chromium"
	go test -run '^$$' -bench . -benchmem ./...

measure: ## count packages, imports, floors, complexity, long lines and unused names in the source
	go run ./cmd/measure

torture: ## crash states, kills, power cuts, damage, shells: an hour or less (Linux; root for the power cuts)
	go test ./cmd/bench -run 'TestComparisons$$' -comparisons
	go test ./policy/shell -run 'TestOracle$$' -oracle 20000 -oracle-seed $(SEED) -timeout 60m -v
	go test ./kernel/report -run 'TestVerifiersAgree$$' -agree 2000 -agree-seed $(SEED) -timeout 30m -v
	go test ./cmd/perlica -run 'TestReadersOfForgedColumns$$' -all-readers -timeout 30m -v
	go test ./cmd/perlica -run 'TestFlowKilled$$' -flow-kills 50 -flow-seed $(SEED) -timeout 30m -v
	go test ./service/acp -run 'TestTorture$$|TestKilled$$' -torture-kills 500 -torture-seed $(SEED) -timeout 30m -v
	go test ./service/email -run 'TestServers$$' -mail-servers -v
	go test ./service -run 'TestTorture$$' -torture-messages 500 -torture-seed $(SEED) -timeout 30m -v
	go test ./service -run 'TestChannelKilled$$' -channel-messages 300 -channel-kills 20 -torture-seed $(SEED) -timeout 60m -v
	go test ./eventlog -run 'TestTorture|TestCrowd|TestTamper|TestFlip|TestNoFlip|TestImportOfDamage|TestExportImportExport' -torture 100000 -powercuts 100 -flips 2500 -seed $(SEED) -timeout 2h -v

torture-team: ## an hour of killed and stopped workers, killed servers and cut networks of a team (Linux, PostgreSQL)
	go test ./cmd/perlica -run 'TestTeamScripts/submit$$' -submit 100000 -v
	go test ./service/team -run 'TestStorm$$' -storm-for 1h -storm-workers 8 -storm-seed $(SEED) -timeout 2h -v

clients: ## acpx and the TypeScript SDK in front of real agents, which PERLICA_REAL_AGENT starts: see CONTRIBUTING.md
	go test ./cmd/perlica -run 'TestRealAgents$$' -timeout 30m -v

sdks: ## what the makers' Go SDKs read in the recorded streams of models; minutes of compiling
	cd provider/model/testdata/sdk && go test -count=1 . -update
	go test ./provider/model -run TestSDKsAgree

pictures: ## make the pictures of docs/tutorial.md; PERLICA_REAL_AGENT starts Claude Code as for clients; needs Chromium
	go test ./cmd/perlica -run 'TestPictures$$' -pictures $(CURDIR)/docs/pictures
	go test ./service/web -run 'TestBrowser/pictures$$' -pictures $(CURDIR)/docs/pictures

golden: ## rewrite golden files and what the documents take from the code
	go test . -update
	go test ./cmd/perlica -run 'TestFlagsInDocs|TestCommandList' -update
	go test ./eventlog ./eventlog/event -run TestFormatPage -update
	go test ./kernel/config -update
	go test ./kernel/language -update
	go test ./kernel/report -update
	go test ./provider/registry -run TestAgentsTable -update-agents
	go test ./provider/predictable -run TestDocs -update
	git diff --stat

ci: ## everything that must hold before a change lands
	.ci/run

dist: ## archives, packages, images, manifests and checksums of all systems in dist/; needs GNU tar
	packaging/dist $(VERSION) dist $(TARGETS)

dist-same: ## make the archives and packages for Linux twice, in two folders, and compare every byte
	packaging/dist $(VERSION) dist-a linux/amd64
	packaging/dist $(VERSION) dist-b linux/amd64
	diff -r dist-a dist-b && rm -r dist-a dist-b

dist-try: ## install the .deb, the npm packages and the image of dist/ and run each (Debian, root, the network)
	packaging/try dist

wine: ## run the program for Windows of dist/ in Wine (Debian's wine64)
	packaging/wine dist

clean: ## remove what make built
	rm -rf dist dist-a dist-b perlica
