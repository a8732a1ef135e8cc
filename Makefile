# Shortcuts. What counts is in .ci: check before a commit, run at the door, run full before a piece of work is called done, hunt.
.PHONY: all build test check race vet lint e2e bench demo dist picture door full hunt clean

all: build test

build:
	go build -o bin/outlive ./cmd/outlive

test:
	go test ./...

# What has changed, and what imports it: 90 seconds.
check:
	.ci/check

race vet demo:
	.ci/run $@

# With golangci-lint at hand, its wider set of .golangci.yml too.
lint:
	.ci/run format lint
	@if command -v golangci-lint >/dev/null; then golangci-lint run; fi

e2e:
	bash e2e/run.sh

bench:
	go run ./bench run

# Everything that a release has, in dist/, each installed and run without a network.
dist:
	packaging/test.sh

# The moving picture of the README, from a real run; on a machine that does nothing else.
picture: build
	cd packaging && go run ./screencast -outlive ../bin/outlive -out ../docs/demo.svg

door:
	.ci/run

full:
	.ci/run full

hunt:
	.ci/hunt

clean:
	rm -rf bin dist
