# `make` alone prints the targets.

# The toolchain is the one that is installed; nothing is downloaded behind your back.
export GOTOOLCHAIN := local

# Tools are built from source at these versions, each into a folder that carries
# the version, so that a new pin is a new build.
SQLC_VERSION := v1.31.1
LINT_VERSION := v2.15.0
SQLC := bin/sqlc-$(SQLC_VERSION)/sqlc
LINT := bin/golangci-lint-$(LINT_VERSION)/golangci-lint
SBOM_VERSION := v1.10.0
SBOM := bin/cyclonedx-gomod-$(SBOM_VERSION)/cyclonedx-gomod
VULN_VERSION := v1.9.0
VULN := bin/govulncheck-$(VULN_VERSION)/govulncheck

# Other programs' readers of the tables that are exported, in an environment of Python's that clones share: PyIceberg, the oldest version of it
# that has to read them, and DuckDB with its extensions.
PYICEBERG_VERSION := 0.12.0
OLD_PYICEBERG_VERSION := 0.10.0
DUCKDB_VERSION := 1.5.5
READERS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ledgerindexer/readers-$(PYICEBERG_VERSION)-$(OLD_PYICEBERG_VERSION)-$(DUCKDB_VERSION)
export TEST_READERS ?= $(READERS)

COMMANDS := indexer backfill sandbox
IMAGE := ledgerindexer

.DEFAULT_GOAL := help
.PHONY: help test bench bench-sql fuzz torture demo docs lint vulnerabilities fmt sqlc sqlc-diff build image fixture release tools readers clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Every test runs once. The race detector makes tests take five to ten times as long and finds nothing in one goroutine: it is on where goroutines meet.
# All tests of these packages, because
#   ingest                        pages, batches, look-ups and tasks are handed on between goroutines
#   participant, scan             one client is asked by many at a time, and several services at once
#   internal/base: jsonhttp, access     all who ask share connections, a rate and a token
#   internal/base/tracing               a trace ends while programs run
#   internal/features: admin, status, statuspage, check   something is shown while others write it
#   store/internal: leadership, names, session   leads are lost meanwhile, and two number the same names
RACED := ingest participant scan \
	internal/base/access internal/base/jsonhttp internal/base/tracing \
	internal/features/admin internal/features/check internal/features/status internal/features/statuspage \
	store/internal/leadership store/internal/names store/internal/session
# But for these, of one goroutine: they try a long list of rates and histories in virtual time, ask one question after the other, or read what has no
# end up to its limit.
NOT_RACED := TestLatency.* TestTheHistoryIsStoredExactlyOnceWhateverHappens \
	TestUpdateByIDOfEveryServer TestContractByIDOfEveryServer TestContractByIDForQueryingParties TestUnknownAndStrangeIDs \
	TestListsWithoutEnd TestASnapshotWithoutEnd TestTextWithoutEnd TestBulkFilesThatGrow TestListsAndDownloadsWithoutEnd
# In the store and in the programs most tests ask a database one question after the other. Those with such names are of writers that meet, and of
# daemons that take over from each other, are stopped or cut off, run until they are current, or have commands run beside them.
# TestRacedTests (internal/tools/brief) sees that each name is of a test, and that none of those that run with the race detector tries less with it.
RACED_IN_STORE := TestLeadership.* TestWriters.* TestPartitionsOfTwoLeaders TestPartitionsAttachBeside.* TestMigrateAtOnce \
	TestMigrateWhileTheSchemaIsBeingMade Test.*CommitOutcomeUnknownIsReadAgain TestHistoryRecordsBehindOthers TestPartyListsAreNumberedOnce TestListsAreRememberedWhenTheyAreCommitted \
	TestNothingIsRememberedOfCommitsThatTheDatabaseLost TestReadersAndTheLeaderGoOnWhileOneIsPruned TestFieldIndexesWhileALeaderWrites TestPoolerTakeover
RACED_IN_APP := TestTheOtherDaemonTakesOver TestDaemonsThatLoseTheirSessions TestADaemonStandsDownForANewerVersion \
	TestPostgresGoesAwayAndComesBack TestAnotherParticipantWhileRunning TestAStreamThatIsCuredGoesOn \
	TestAJobFinishesItsTasks TestAJobThatIsStopped TestUntilCurrentWithAStreamThatFails TestTheProcessEndsWhenNoStreamCanGoOn \
	TestALedgerAndItsNetworkInOneDatabase TestANodeThatLagsBehindWhatIsStoredAhead TestMaxRequestsBoundsEverything \
	TestTheDaemonRetainsSoMuch TestTheDaemonGoesOnBesideRedacting TestCommandsBesideAWriter \
	TestDifferencesAreSealed TestTypedViewsAreChangedConcurrently TestProgressIsRecorded TestProfilesOfTheDaemon TestTheStatusPage TestABatchIsATrace

empty :=
any = ^($(subst $(empty) ,|,$(strip $(1))))$$

# Each package is tested by a command of its own, as many at a time as there are processors, those with the most tests first: one command for all prints
# none before those in front of it. Many tests wait, for a lock to be given up or for a server to come back, so that four of a package run at a time.
# The race detector needs cgo and a C compiler. RACE=on insists on it. With it a fifth of the random inputs are tried, in a database two fifths, and no program waits a second at
# its end for what still runs, as goleak finds that. Garbage is collected less often, which saves a tenth of the time.
test: ## run the tests, with the race detector where goroutines meet, against a PostgreSQL that is found or started (ARGS: flags for go test)
	@race=; \
	if [ "$$(go env CGO_ENABLED)" = 1 ] && command -v $$(go env CC) >/dev/null; then race=-race; \
	elif [ "$(RACE)" = on ]; then echo "no C compiler ($$(go env CC)) or CGO_ENABLED=0: the race detector can't be built" >&2; exit 1; \
	else echo "without -race: no C compiler ($$(go env CC)) or CGO_ENABLED=0"; fi; \
	listed() { go list -f '{{with or .TestGoFiles .XTestGoFiles}}{{len .}} {{$$.Dir}}{{end}}' "$$@"; }; \
	go build ./... && go build $$race ./internal/app && all=$$(listed ./...) && raced=$$(listed $(RACED:%=./%)) || exit; \
	{ echo "$$all" | grep -vxF "$$raced" | sed 's#/internal/app$$#& -skip=$(call any,$(RACED_IN_APP))#; s#/store$$#& -skip=$(call any,$(RACED_IN_STORE))#'; \
		echo "$$raced" | sed 's#$$# '"$$race"' -skip=$(call any,$(NOT_RACED))#'; echo "20 ./ingest ./participant ./scan -run=$(call any,$(NOT_RACED))"; \
		echo "30 ./internal/app $$race -run=$(call any,$(RACED_IN_APP))"; echo "30 ./store $$race -run=$(call any,$(RACED_IN_STORE))"; } | \
	sort -rn | awk -v args="$(ARGS)" '{ sub(/^[0-9]+ /, ""); print (/ -race/ ? "RAPID_CHECKS=20 " : /\/store/ ? "RAPID_CHECKS=40 " : ""), "go test -shuffle=on -parallel=4 -timeout=30m", $$0, args }' | \
	(export GOGC=$${GOGC:-300} GORACE=$${GORACE:-atexit_sleep_ms=0}; set -x; xargs -P "$$(getconf _NPROCESSORS_ONLN)" -L 1 env)

# What a target finds becomes a file in its package's testdata/fuzz, which every test run tries again from then on.
# Inputs that reach something new are made smaller 100 times at most, which would take most of a short run otherwise.
fuzz: ## run every fuzz target for FUZZTIME each (default 10s), all of them even where one finds something
	@listed=$$(go test -list '^Fuzz' ./...) || { echo "$$listed"; exit 1; }; \
	echo "$$listed" | awk '/^Fuzz/ { name[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, name[i]; n = 0 }' | { \
	failed=; while read -r package target; do \
		echo "== $$target of $$package"; \
		go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 100x "$$package" </dev/null || failed="$$failed $$target"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }; }

# The seed of a run is printed; the schedule of faults comes from it, timings don't.
ROUNDS := 3
SEED = $(shell date +%s)

torture: ## run the programs under faults and compare every row (ROUNDS=3, about 4 minutes; SEED= repeats a run)
	TORTURE_ROUNDS=$(ROUNDS) TORTURE_SEED=$(SEED) go test -count=1 -v -timeout=24h -run='^TestTorture$$' ./internal/tools/torture

# All of it takes an hour or more and writes docs/benchmarks.md. Needs psql and pg_dump in PATH, and 25 GB of disk.
bench: ## measure the programs against what PostgreSQL can take (ARGS: flags, such as --only=catchup --runs=1)
	@go build -o bin/bench ./cmd/bench
	@exec bin/bench $(or $(ARGS),--out=docs/benchmarks.md)

# Writes its own part of docs/benchmarks.md, in about half an hour. Needs 25 GB of disk.
bench-sql: ## measure an analyst's questions in SQL (ARGS: flags, such as --scale=0.05)
	@go build -o bin/bench ./cmd/bench
	@exec bin/bench --only=sql $(or $(ARGS),--out=docs/benchmarks.md)

# Not `go run`, which turns every exit code into 1.
demo: ## a simulated ledger, a database and the indexer, live until Ctrl-C (ARGS=--once: until caught up)
	@go build $(STAMPED) -o bin/ ./cmd/indexer ./cmd/sandbox
	@exec bin/sandbox --all $(ARGS)

docs: ## write docs/relations.md from the comments in migrations/
	WRITE_DOCS=1 go test -count=1 -run '^TestReferenceOfRelations$$' ./internal/app

# Collecting garbage less often saves a quarter of the processor time.
lint: $(LINT) ## find mistakes and imports against the architecture
	GOGC=$${GOGC:-300} GOMEMLIMIT=$${GOMEMLIMIT:-3GiB} $(LINT) run

# What can't be asked says so and is no failure: commits must be possible without a network. Exit code 3 is what was found.
vulnerabilities: $(VULN) ## look for known vulnerabilities in what the programs call (ARGS: flags of govulncheck)
	@said=$$($(VULN) $(ARGS) ./... 2>&1); code=$$?; echo "$$said"; \
	case "$$code $$said" in \
	1*"fetching vulnerabilities: Get "*) echo "the database of vulnerabilities can't be reached: nothing was looked for" ;; \
	*) exit $$code ;; \
	esac

fmt: ## format the Go code
	gofmt -l -w .

sqlc: $(SQLC) ## generate store/internal/dbsqlc from migrations/ and queries/
	$(SQLC) generate

sqlc-diff: $(SQLC) ## fail where the generated code is not what sqlc would generate
	$(SQLC) diff

# Go stamps version and commit by itself, whatever GOFLAGS says: from the tag, where a clone is built that stands on one.
STAMPED := -buildvcs=auto

build: ## build the commands into bin/
	go build $(STAMPED) -o bin/ $(COMMANDS:%=./cmd/%)

# The image is made from scratch: static programs and the authorities that sign
# web servers' certificates, which come from the machine that builds.
CERTIFICATES = $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

image: ## build the container image, ledgerindexer:VERSION and :local, and dist/ledgerindexer.yaml for Kubernetes, which names the version
	@test -n "$(CERTIFICATES)" || { echo "no certificate authorities on this machine: install ca-certificates" >&2; exit 1; }
	rm -rf dist
	mkdir -p dist/state
	CGO_ENABLED=0 GOOS=linux go build $(STAMPED) -trimpath -ldflags='-s -w' -o dist/ $(COMMANDS:%=./cmd/%)
	cp -L "$(CERTIFICATES)" dist/ca-certificates.crt
	.ci/manifest "$$(go version -m dist/indexer | awk '$$1 == "mod" { print $$3 }')" >dist/ledgerindexer.yaml
	docker build -t $(IMAGE):local -t "$$(sed -n 's|^ *image: .*/||p' dist/ledgerindexer.yaml)" .

# What a release needs before it is tagged, because its migrations never change again.
fixture: ## keep a database of this schema, VERSION=vX.Y.Z, for the tests of the migrations of later versions
	@[ -n "$(VERSION)" ] || { echo "say of which version: make fixture VERSION=vX.Y.Z" >&2; exit 1; }
	mkdir -p internal/app/testdata/released
	WRITE_DUMP="$(CURDIR)/internal/app/testdata/released/$(VERSION).dump" go test -count=1 -run '^TestManagedPostgreSQL$$' ./internal/app
	xz -9 -f internal/app/testdata/released/$(VERSION).dump

# The second time from another folder and with nothing that was compiled before, which takes some minutes. PLATFORMS=linux/amd64 is a trial.
release: $(SBOM) ## build the archives of a release into release/, twice, and compare the bytes
	@[ -z "$$(git status --porcelain --untracked-files=no)" ] || { echo "there are changes that are not committed: a release is of a commit" >&2; exit 1; }
	@commit=$$(git rev-parse HEAD) && again=$$(mktemp -d) && trap 'rm -rf "$$again"' EXIT && export SBOM="$(CURDIR)/$(SBOM)" && \
	.ci/release release "$$commit" && echo "once more" && GOCACHE="$$again/cache" .ci/release "$$again/release" "$$commit" >/dev/null && \
	diff -r release "$$again/release" && echo "built twice: the same bytes"

tools: $(SQLC) $(LINT) $(VULN) ## build the tools, which takes a minute each the first time

readers: $(READERS) ## install other programs' readers of exported tables, for tests (400 MB, in the user's cache)

# It gets its name when it is complete, so that a run that ended early, or one beside it, does no harm.
$(READERS):
	@mkdir -p "$(@D)"; part=$$(mktemp -d "$(@D)/part-XXXXXX"); trap 'rm -rf "$$part"' EXIT; set -ex; \
	python3 -m venv "$$part/venv"; \
	"$$part/venv/bin/python" -m pip install -q --disable-pip-version-check "pyiceberg[pyarrow]==$(PYICEBERG_VERSION)" sortedcontainers \
		"duckdb==$(DUCKDB_VERSION)" "duckdb-extension-iceberg==$(DUCKDB_VERSION)" "duckdb-extension-avro==$(DUCKDB_VERSION)"; \
	"$$part/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --target "$$part/old" "pyiceberg==$(OLD_PYICEBERG_VERSION)"; \
	mv -T "$$part" "$@" || [ -d "$@" ]

# No cgo: sqlc then takes PostgreSQL's parser as WebAssembly, and any machine can
# build it.
$(SQLC):
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install github.com/sqlc-dev/sqlc/cmd/sqlc@$(SQLC_VERSION)

$(LINT):
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(SBOM):
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)

$(VULN):
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)

clean: ## remove what was built
	rm -rf bin dist release
