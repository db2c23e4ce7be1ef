"""Models as executables: kernels built ahead of time, dependencies, and one file that holds them with the weights."""
