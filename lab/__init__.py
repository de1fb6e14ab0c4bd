"""Tools of the project that are no tests: benchmarks, the soak, the recorder of real clusters, the modelled cluster."""
