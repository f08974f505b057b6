"""An emulated wide-area network on one machine, for demonstrations, tests and benchmarks."""
