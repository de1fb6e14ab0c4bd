# Everything that is done with a checkout. `make demo` and `make test` each work on a fresh one.
.DEFAULT_GOAL := help
.PHONY: help install install-dev demo test test-all test-nightly test-pythons durations check check-deploy validators bench bench-core bench-ingest
.PHONY: bench-page bench-streaming bench-beside bench-questions bench-fleet soak
.PHONY: lint type generated prose audit format docs docs-site rules
.PHONY: boards board-schema pictures record dist release lock clean

# Programs that the tests run may have been put beside Python.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Some images set it. Then each of the hundreds of processes of a run compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
TEST_ARGS ?=
BENCH_ARGS ?=

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

install: ## Make .venv/bin/kontrast, get Java and the Maven artifacts where they are missing
	@sh deploy/install.sh

install-dev: ## The same with what the tests need
	@sh lab/install_dev.sh

demo: install ## Play the story on an embedded cluster and stay up until Ctrl-C (ONCE=1: end after the story)
	@.venv/bin/kontrast demo $(if $(filter-out 0,$(ONCE)),--once)

# Tests wait for servers more than they compute, so there are more processes than cores.
WORKERS ?= 3
SIDE_BY_SIDE = --dist loadgroup --no-loadscope-reorder -n
# Every branch of controller/ must run in its own tests, which compute and do nothing else, whatever hypothesis draws.
BRANCHES = --cov=controller --cov-branch --cov-fail-under=100 --cov-report=term-missing:skip-covered

check: lint type generated prose ## Style, types, imports, prose, and whether generated pages are current: within a minute

test: $(if $(TEST_ARGS),install-dev,check) ## Checks, and the tests that take seconds: about 5 minutes (TEST_ARGS='-k offline': only these tests)
	.venv/bin/python -m pytest $(or $(TEST_ARGS),--quick $(SIDE_BY_SIDE) $(WORKERS))

LONG_TESTS = .venv/bin/python -m pytest $(SIDE_BY_SIDE) $(WORKERS) $(TEST_ARGS)

# Three processes share two cores, so a test that failed beside the others has to pass alone. Both runs name it. From the
# tenth failure on, and after an error of another kind, the exit code is not 1, and nothing is asked again. A test of a
# group was recorded with the group after its name, by which nobody would find it.
AGAIN_ALONE = [ $$? -eq 1 ] && sed -i 's/@[^]"@]*": true/": true/' .pytest_cache/v/cache/lastfailed && \
	.venv/bin/python -m pytest -x --last-failed

test-all: check ## Checks, every branch of the core, and all tests but a night's
	.venv/bin/python -m pytest tests/controller $(BRANCHES) $(SIDE_BY_SIDE) 2
	$(LONG_TESTS) --ignore=tests/controller --maxfail 10 || { $(AGAIN_ALONE); }

test-nightly: install-dev ## The longest tests, 20,000 random histories, and check-deploy LONG=1: what the gate leaves to a night
	$(LONG_TESTS) -m nightly || { $(AGAIN_ALONE) -m nightly; }
	$(MAKE) check-deploy LONG=1

durations: install-dev ## Record how long the tests of test-all take, which orders them and chooses those of `make test`: on idle cores
	$(LONG_TESTS) --record-durations

PYTHONS ?= 3.10 3.11 3.12 3.13 3.14
UV := $(CURDIR)/.venv/bin/uv

# uv looks in PATH and among its own. pyenv's are not in PATH.
test-pythons: install-dev ## The core's tests, and the demo from the wheel, on each of PYTHONS='3.10 3.14' that is on this machine
	rm -rf build/pythons && $(UV) build --quiet --wheel --out-dir build/pythons
	@PATH="$$PATH$$(printf ':%s' "$$HOME"/.pyenv/versions/*/bin)"; \
	for version in $(PYTHONS); do \
		python=$$($(UV) python find --no-project --system $$version 2>/dev/null) || { skipped="$$skipped $$version"; continue; }; \
		echo "== $$("$$python" --version)"; \
		own=build/pythons/$$version; export VIRTUAL_ENV=$$own; install="$(UV) pip install --quiet"; \
		$(UV) venv --quiet --python "$$python" $$own && $$install --require-hashes -r requirements/tools.txt && \
		$$install --require-hashes --no-build-isolation -r requirements/dev.txt && \
		$$install --no-deps build/pythons/kontrast-*.whl && \
		$$own/bin/python -m pytest -q tests/controller $(SIDE_BY_SIDE) $(WORKERS) && \
		(cd build/pythons && $$version/bin/kontrast demo --once) || exit 1; \
	done; echo "not on this machine:$${skipped:- none}"

# The commit before a change is a good BASE; BENCH_ARGS='--benchmark core --rounds 5' asks for less.
bench: install-dev ## Benchmarks on this checkout and on BASE=REV in turn, and their ratios with their spread
	@.venv/bin/python -m lab.bench.compare $(or $(BASE),$(error BASE=REV names the commit to compare with)) $(BENCH_ARGS)

# By helm, helm-unittest, kubeconform, kube-score, hadolint, systemd-analyze, promtool, amtool, and as processes.
VALIDATED := tests/deploy/test_chart.py tests/deploy/test_chart_values.py tests/deploy/test_compose.py tests/deploy/test_image.py \
	tests/deploy/test_systemd.py tests/dashboards/test_receivers.py tests/dashboards/test_alertmanager.py \
	tests/dashboards/test_alert_rules.py tests/docs/test_deployment_page.py

validators: install-dev ## Build what check-deploy needs, by Go: minutes the first time (LONG=1)
	sh tests/deploy/validators.sh $(if $(LONG),--long)

check-deploy: validators ## Every validator of deploy/, built by Go once (LONG=1: also an API server, a KDC, YARN, HDFS, S3, a release, a fleet)
	.venv/bin/python -m pytest -m "deploy or not deploy" $(SIDE_BY_SIDE) $(WORKERS) $(VALIDATED) \
		--maxfail 10 || { $(AGAIN_ALONE) -m "deploy or not deploy" $(VALIDATED); }
ifdef LONG
	.venv/bin/python -m pytest -m deploy $(VALIDATED:%=--ignore=%)
	.venv/bin/python -m lab.bench.whole_fleet --clusters 5 --partitions 50 --seconds 10
	@if [ "$$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then \
		rm -rf build/image && .venv/bin/python -m tests.deploy.image_root build/image && \
		.venv/bin/python -m lab.bench.whole_fleet --clusters 5 --partitions 50 --seconds 10 --image build/image/image; \
	else echo "the image was not built, because that needs root and debootstrap"; fi
endif

bench-core: install-dev ## Time and memory of the core (BENCH_ARGS='--partitions 20000')
	@.venv/bin/python -m lab.bench.core $(BENCH_ARGS)

bench-ingest: install-dev ## Read and watch 200,000 partitions of a real ZooKeeper (BENCH_ARGS='--partitions 20000')
	@.venv/bin/python -m lab.bench.ingest $(BENCH_ARGS)

bench-page: install-dev ## The live page in a real browser and with 50 clients, by size (BENCH_ARGS='--partitions 12000')
	@.venv/bin/python -m lab.bench.page $(BENCH_ARGS)

bench-questions: install-dev ## Each question at a real ZooKeeper, beside kafka-topics.sh (BENCH_ARGS='--partitions 20000')
	@.venv/bin/python -m lab.bench.questions $(BENCH_ARGS)

bench-streaming: install-dev ## The Spark job: ready, latency, a broker's loss, by size (BENCH_ARGS='--partitions 200000')
	@.venv/bin/python -m lab.bench.streaming $(BENCH_ARGS)

bench-beside: install-dev ## Watcher and job beside a real controller: from nothing to complete, a broker's loss (BENCH_ARGS='--partitions 20000')
	@.venv/bin/python -m lab.bench.beside_controller $(BENCH_ARGS)

bench-fleet: install-dev ## A fleet through watch, Kafka, job and serve, each killed once (BENCH_ARGS='--clusters 60 --partitions 500')
	@.venv/bin/python -m lab.bench.whole_fleet $(BENCH_ARGS)

HOURS ?= 1

# A day: HOURS=24. The result is in build/ unless OUT names another directory.
soak: install-dev ## Run everything for HOURS=1 under random operations, and judge that nothing grows (SEED=1 OUT=DIR)
	@.venv/bin/python -m lab.soak --hours $(HOURS) --seed $(or $(SEED),1) $(addprefix --out ,$(OUT))

lint: install-dev ## Style, format and import rules
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports

type: install-dev ## Types
	.venv/bin/mypy

generated: install-dev ## Whether pages, boards and rules are what the code makes
	.venv/bin/python -m pytest -q -m generated tests/dashboards tests/docs

prose: install-dev ## Count the marks of hard prose, and print the worst sentences above a limit (PROSE_ARGS='--worst 30')
	@.venv/bin/python -m tests.prose $(PROSE_ARGS)

audit: install-dev ## Whether a pin was yanked or is vulnerable, by pip's index
	.venv/bin/python lab/release/audit.py

format: install-dev ## Write the format, mend what can be mended
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

KAFKA ?= 3.9.2
BROKERS ?= 4
SECONDS ?= 180

REGISTERED ?= 0
PARTITIONS ?= 0
SETTINGS ?=

# A large cluster: REGISTERED=27 PARTITIONS=10000 BROKERS=3; an upgrade: UPGRADE_TO=3.9.2 KAFKA=2.8.2.
record: install-dev ## Record a real cluster under random actions (SEED=101 OUT=FILE.tar.xz KAFKA=3.9.2 SETTINGS='K=V')
	.venv/bin/python -m lab.record $(SEED) --kafka $(KAFKA) --brokers $(BROKERS) --seconds $(SECONDS) \
		--registered $(REGISTERED) --partitions $(PARTITIONS) $(addprefix --setting ,$(SETTINGS)) \
		$(addprefix --upgrade-to ,$(UPGRADE_TO)) \
		--out $(or $(OUT),tests/conformance/recordings/seed$(SEED)-$(KAFKA).tar.xz)

docs: install-dev ## Write the pages of docs/ that are made from the code
	.venv/bin/python -m lab.pages.states > docs/reference/states.md
	.venv/bin/python -m lab.pages.alerts > docs/reference/alerts.md
	.venv/bin/python -m lab.pages.remedies > docs/reference/remedies.md
	.venv/bin/python -m lab.pages.migration_checks > docs/reference/migration-checks.md
	.venv/bin/python -m lab.pages.schemas
	.venv/bin/python -m lab.pages.metrics > docs/reference/metrics.md
	.venv/bin/python -m lab.pages.receivers > docs/reference/receivers.md
	.venv/bin/python -m lab.pages.postmortem

SITE_PYTHON := build/site-env/bin/python

build/site-env/installed: requirements/site.txt
	python3 -m venv --clear build/site-env
	$(SITE_PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	touch $@

docs-site: build/site-env/installed ## Build the site of docs/ in build/site: strict links, and offline once its packages are there
	NO_MKDOCS_2_WARNING=1 $(SITE_PYTHON) -m mkdocs build --strict --quiet

boards: install-dev ## Write the Grafana boards from their sources
	.venv/bin/python -m lab.boards

rules: ## Write the rules of Prometheus with absolute links in build/rules (PAGE_URL=, DOCS_URL= and GRAFANA_URL=)
	mkdir -p build/rules
	for rules in self cluster; do sed -e '' \
		$(if $(DOCS_URL),-e 's|runbook_url: docs/|runbook_url: $(DOCS_URL:%/=%)/|') \
		$(if $(GRAFANA_URL),-e 's|dashboard_url: |&$(GRAFANA_URL:%/=%)/|') \
		$(if $(PAGE_URL),-e 's|page_url: |&$(PAGE_URL:%/=%)/|') \
		deploy/prometheus/kontrast-$$rules.yml > build/rules/kontrast-$$rules.yml || exit 1; done

pictures: install-dev ## Take the screenshots in docs/page: the live page in every state, in a real browser
	.venv/bin/python -m tests.dashboards.page_pictures

board-schema: ## Renew the JSON Schema of a board from Grafana's published types (needs npm)
	cd tests/dashboards/grafana_schema && npm install --silent --no-audit --no-fund && npm run --silent make

dist: install-dev ## What spark-submit needs, the bill of materials (CycloneDX) and third-party licences, in dist/
	@.venv/bin/python lab/release/dist.py
	@.venv/bin/python lab/release/bill_of_materials.py

VERSION ?= 1.0.0

release: install-dev ## Wheel, sdist, kontrast.zip, SBOM, changes and checksums of the newest commit (VERSION=1.0.0 HOME_URL=)
	@.venv/bin/python lab/release/release.py $(VERSION) $(HOME_URL)

lock: install-dev ## Renew the pins in requirements/
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		pyproject.toml --extra job -o requirements/run.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		pyproject.toml -c requirements/run.txt -o requirements/base.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		pyproject.toml --extra job --extra mcp -c requirements/run.txt -o requirements/mcp.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		pyproject.toml --extra job --extra mcp --group dev -c requirements/run.txt -o requirements/dev.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header --allow-unsafe \
		requirements/tools.in -c requirements/dev.txt -o requirements/tools.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		requirements/kerberos.in -o requirements/kerberos.txt
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header \
		requirements/site.in -o requirements/site.txt

clean: ## Remove what was made, but for the cache of Maven artifacts
	rm -rf .venv .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
