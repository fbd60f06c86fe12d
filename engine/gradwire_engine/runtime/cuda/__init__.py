"""GPU runtime: kernel launches, CUDA graphs, copies through pinned memory, CUDA sources."""
