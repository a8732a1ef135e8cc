# Shortcuts. What counts is .ci/run, which runs all of it.
.PHONY: all build test race vet lint fuzz e2e bench demo dist picture check clean

all: build test

build:
	go build -o bin/outlive ./cmd/outlive

test:
	go test ./...

race:
	.ci/run race

vet:
	.ci/run vet

# With golangci-lint at hand, its wider set of .golangci.yml too.
lint:
	.ci/run format lint
	@if command -v golangci-lint >/dev/null; then golangci-lint run; fi

fuzz:
	.ci/run fuzz

e2e:
	bash e2e/run.sh

bench:
	go run ./bench

demo:
	go run ./cmd/outlive demo

# Everything that a release has, in dist/, each installed and run without a network.
dist:
	packaging/test.sh

# The moving picture of the README, from a real run; on a machine that does nothing else.
picture: build
	cd packaging && go run ./screencast -outlive ../bin/outlive -out ../docs/demo.svg

check:
	.ci/run

clean:
	rm -rf bin dist
